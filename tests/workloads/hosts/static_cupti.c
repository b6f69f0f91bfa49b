/* A library that a CUPTI is linked into statically, as into some builds of PyTorch: it exports the
 * function, and is no libcupti. */
int cuptiSubscribe(void** subscriber, void* callback, void* user);
int cuptiSubscribe(void** subscriber, void* callback, void* user) {
  (void)subscriber, (void)callback, (void)user;
  return 39;
}
