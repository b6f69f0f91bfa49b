"""The layer table of real models: torchstat's numbers by its formulas, shapes, parameters, FLOPs by closed form."""
import json
import unittest

import harness

MODELS = harness.PROGRAMS / 'layer_models.py'
TORCHSTAT = ('madd', 'torchstat_flops', 'torchstat_read_bytes', 'torchstat_written_bytes')


@harness.needs_torch
class LayersTest(harness.TracedTest):

    def check(self, model, root, parameters, macs):
        command = [harness.TORCH_PYTHON, MODELS, model]
        traced, run = self.run_traced(command, ['--level', 'full'])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        formulas = self.run_bare([*command, '--formulas'])
        self.assertEqual(formulas.returncode, 0, formulas.stderr)
        expected = json.loads(formulas.stdout)
        layers = {row['module']: row for row in self.report(run, 'layers')}
        self.assertLessEqual(set(expected), set(layers))
        for module, counts in expected.items():
            self.assertEqual([layers[module][column] for column in TORCHSTAT], counts, module)
            self.assertAlmostEqual(layers[module]['torchstat_intensity'], counts[1] / (counts[2] + counts[3]), msg=module)
        self.assertEqual(layers[root]['parameters'], parameters)
        self.assertEqual(layers[root]['flops'], 2 * 2 * macs)  # two images
        self.assertEqual((layers[root]['input_shape'], layers[root]['output_shape']), ('2x3x224x224', '2x1000'))
        self.assertAlmostEqual(layers[root]['share_percent'], 100)
        return layers

    def test_alexnet(self):
        layers = self.check('alexnet', 'AlexNet', 61_100_840, 714_188_480)
        first = layers['AlexNet.features.0']
        self.assertEqual((first['input_shape'], first['output_shape']), ('2x3x224x224', '2x64x55x55'))
        self.assertEqual(first['parameters'], 64 * 3 * 11 * 11 + 64)
        # Each tensor once: the images, the filters and the bias; what comes out.
        self.assertEqual(first['read_bytes'], 4 * (2 * 3 * 224 * 224 + 64 * 3 * 11 * 11 + 64))
        self.assertEqual(first['written_bytes'], 4 * 2 * 64 * 55 * 55)
        self.assertEqual(first['output_bytes'], 4 * 2 * 64 * 55 * 55)
        # torchstat reads the filters once a sample.
        self.assertGreater(first['torchstat_read_bytes'], first['read_bytes'])

    def test_resnet_50(self):
        layers = self.check('resnet50', 'ResNet', 25_557_032, 4_089_184_256)
        # One module, which each block calls three times.
        self.assertEqual(layers['ResNet.layer1.0.relu']['calls'], 3)

    def test_mobilenet(self):
        layers = self.check('mobilenet_v2', 'MobileNetV2', 3_504_872, 300_774_272)
        # A filter for each channel.
        deep = layers['MobileNetV2.features.1.conv.0.0']
        self.assertEqual((deep['output_shape'], deep['parameters']), ('2x32x112x112', 32 * 9))

    def test_the_input_of_an_embedding_is_its_indices_not_its_weight(self):
        traced, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'embeds.py'], ['--level', 'full'])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        inputs = {row['module']: row['input_shape'] for row in self.report(run, 'layers')}
        self.assertEqual(inputs, {'Sequential': '1x7', 'Sequential.0': '1x7', 'Sequential.1': '1x7x3', 'Sequential.2': '7x3'})


if __name__ == '__main__':
    unittest.main()
