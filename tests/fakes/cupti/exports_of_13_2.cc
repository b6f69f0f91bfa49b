// What 13.2 exports and 13.0 does not. Nobody calls it.
extern "C" __attribute__((visibility("default"))) int cuptiActivityEnable_v2();
int cuptiActivityEnable_v2() { return 1; }
