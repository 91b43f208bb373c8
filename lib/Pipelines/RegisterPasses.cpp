#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Pipelines/Pipelines.h"
void kvbuf::registerAllPasses() { registerKVBufferTransformsPasses(); }
void kvbuf::registerPipelines() {}
