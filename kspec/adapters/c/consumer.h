/* Calls of a consumer. */
#ifndef CONSUMER_H
#define CONSUMER_H

#include "adapter.h"
#include "lines.h"

extern const struct named_operation consumer_operations[];

#endif
