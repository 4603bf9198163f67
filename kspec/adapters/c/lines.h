/* The adapter protocol: one JSON object per line in, one answer per line out, as documented in
 * docs/reference/adapters.md. An answer says whether the client or the adapter failed. */
#ifndef LINES_H
#define LINES_H

#include "json.h"

struct adapter;

/* Perform a call, and return the answer. */
typedef cJSON *operation(struct adapter *adapter, const cJSON *call);

struct named_operation {
    const char *name;
    operation *perform;
};

/* What differs from the client's defaults. */
struct option {
    const char *name, *value;
};

struct server {
    const char *client, *version;
    struct adapter *adapter;
    const struct option *options;                /* ends with a name that is NULL */
    const struct named_operation *const *groups; /* tables that end so, as does their list */
    operation *connect, *close;
};

/* The client returned. `raw` has what `result` leaves out, or is NULL. */
cJSON *returned(cJSON *result, cJSON *raw);

/* The client failed; the members are those of failures.h. */
cJSON *raised(cJSON *failure);

/* The client has no call for it. */
cJSON *unsupported(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The line makes no sense to the adapter: nothing is known about the client. */
cJSON *adapter_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write the greeting, then answer every line of stdin. */
void serve(const struct server *server);

#endif
