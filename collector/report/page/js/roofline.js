// How near to the device's ceilings kernels and modules come.
const rooflineSection = () => {
  const roofline = tableOf('roofline');
  const question = 'arithmetic per byte against arithmetic per second, below the device’s ceilings';
  const advice = roofline.notes[0] || 'A roofline needs FLOPs and bytes of kernels: record with --level full, which counts the FLOPs of PyTorch’s operators.';
  const column = (...names) => names.find((name) => roofline.has(name));
  const intensity = column('intensity', 'flops_per_byte', 'arithmetic_intensity', 'dram_intensity');
  const speed = column('flops_per_second', 'achieved_flops', 'flops_per_s');
  if (roofline.count === 0) return emptySection('roofline', 'Roofline', question, advice);
  const name = column('name', 'operator', 'module', 'kernel');
  const peak = column('peak_flops', 'ceiling_flops');
  const rows = intensity && speed ? roofline.rowsWhere((row) => roofline.at(row, intensity) > 0 && roofline.at(row, speed) > 0) : [];
  const points = rows.map((row) => ({x: roofline.at(row, intensity), y: roofline.at(row, speed), colour: '--series-1',
    tell: () => [el('strong', {}, cut(roofline.at(row, name) || '', 80)), el('br'), cell(roofline, row, speed), ' FLOP/s at ', cell(roofline, row, intensity), ' FLOP/byte']}));
  const peaks = peak ? [...new Set(rows.map((row) => roofline.at(row, peak)).filter((value) => value > 0))].map((y) => ({y})) : [];
  const background = (svg, x, y, width, height, margin) => {
    for (const {y: at} of peaks) {
      svg.append('line').attr('class', 'ceiling').attr('x1', margin.left).attr('x2', width - margin.right).attr('y1', y(at)).attr('y2', y(at));
      svg.append('text').attr('class', 'axis-name').attr('x', width - margin.right).attr('y', y(at) - 4).attr('text-anchor', 'end').text(`${formatFlops(at)}FLOP/s`);
    }
  };
  return section('roofline', 'Roofline', question, 'all', points.length === 0 ? null : logScatter(points, {label: 'roofline', nameX: 'FLOP / byte', nameY: 'FLOP/s', formatX: formatCount, formatY: formatFlops, ceilings: peaks, background}),
    dataTable(roofline, {noun: 'rows', shorten: shortName}).element);
};
