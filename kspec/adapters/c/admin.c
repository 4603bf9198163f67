#include "admin.h"

#include <stdlib.h>

#include "failures.h"
#include "settings.h"

bool admin_begin(struct admin_call *made, struct adapter *adapter, rd_kafka_admin_op_t api) {
    char text[512];
    *made = (struct admin_call){0};
    made->client = settings_admin(adapter, &made->answer);
    if (made->client == NULL)
        return false;
    made->queue = rd_kafka_queue_new(made->client);
    made->options = rd_kafka_AdminOptions_new(made->client, api);
    rd_kafka_resp_err_t code = rd_kafka_AdminOptions_set_request_timeout(
        made->options, adapter->timeout_ms, text, sizeof(text));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        made->answer = raised(failure_of_code(made->client, code, text));
    return made->answer == NULL;
}

bool admin_allows(struct admin_call *made, rd_kafka_error_t *error) {
    if (error == NULL)
        return true;
    made->answer = raised(failure_of_error(made->client, error));
    rd_kafka_error_destroy(error);
    return false;
}

static void end(struct admin_call *made) {
    if (made->client == NULL)
        return;
    rd_kafka_AdminOptions_destroy(made->options);
    rd_kafka_queue_destroy(made->queue);
}

cJSON *admin_answer(struct admin_call *made, admin_result *result) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(made->queue, -1);
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    cJSON *answer;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        answer = result(made->client, event);
    else
        answer = raised(failure_of_code(made->client, code, rd_kafka_event_error_string(event)));
    rd_kafka_event_destroy(event);
    end(made);
    return answer;
}

cJSON *admin_refused(struct admin_call *made) {
    end(made);
    return made->answer;
}
