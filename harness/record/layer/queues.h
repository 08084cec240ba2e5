/* Queues: submissions, waits of the host, names of objects. */

/* Destroys the layer's fence, which its queue may still signal after one of the program: at most the time of an empty submission. */
static void destroy_fence(Commands *commands) {
    static const uint64_t TIMEOUT_NANOSECONDS = 1000000000;
    Handle device = commands->device;
    CALL_NEXT(device, Result, vkWaitForFences, (Handle, uint32_t, const uint64_t *, uint32_t, uint64_t))(
        device, 1, &commands->fence, 1, TIMEOUT_NANOSECONDS);
    CALL_NEXT(device, void, vkDestroyFence, (Handle, uint64_t, const void *))(device, commands->fence, NULL);
    commands->fence = commands->program_fence = 0;
}

/* Writes the cases of a submission that has ended. */
static void finish_pending(Commands **at) {
    Commands *commands = *at;
    for (Capture *capture = commands->captures; capture; capture = capture->next) write_case(capture);
    for (uint32_t i = 0; i < commands->executed_count; i++)
        for (Capture *capture = commands->executed[i]->captures; capture; capture = capture->next) write_case(capture);
    *at = commands->next_pending;
    destroy_fence(commands);
}

/* Writes the cases of submissions that have ended: all with `is_idle`, and those that signal this fence of the program. */
static void write_ended(Handle device, bool is_idle, uint64_t program_fence) {
    for (Commands **at = &pending; *at;) {
        Commands *commands = *at;
        bool has_ended = commands->device == device
            && (is_idle || (program_fence && commands->program_fence == program_fence)
                || CALL_NEXT(device, Result, vkGetFenceStatus, (Handle, uint64_t))(device, commands->fence) == SUCCESS);
        if (has_ended) finish_pending(at);
        else at = &commands->next_pending;
    }
}

/* A secondary command buffer that the program changes is in no submission that runs: those that had it have ended. */
static void finish_executions(const Commands *secondary) {
    for (Commands **at = &pending; *at;) {
        bool has_secondary = false;
        for (uint32_t i = 0; i < (*at)->executed_count; i++) has_secondary = has_secondary || (*at)->executed[i] == secondary;
        if (has_secondary) finish_pending(at);
        else at = &(*at)->next_pending;
    }
}

static bool has_unwritten_captures(const Commands *commands) {
    for (const Capture *capture = commands->captures; capture; capture = capture->next)
        if (!capture->is_written) return true;
    for (uint32_t i = 0; i < commands->executed_count; i++)
        if (has_unwritten_captures(commands->executed[i])) return true;
    return false;
}

static uint64_t write_commands(const Text *list, const LateUse *late_uses, uint32_t late_use_count) {
    uint64_t id = ++last_id;
    Text line = { 0 };
    append(&line, "{\"event\":\"commands\",\"commands\":%" PRIu64 ",\"list\":[%s],\"updated\":[", id, list->data ? list->data : "");
    for (uint32_t i = 0; i < late_use_count; i++)
        if (set_updates(late_uses[i].set) != late_uses[i].updates) append(&line, "%s%" PRIu64, line.data[line.length - 1] == '[' ? "" : ",", late_uses[i].use);
    append(&line, "]}");
    write_line(&line);
    return id;
}

/* Writes recorded commands once for each state of their descriptors, and returns their id. */
static uint64_t commands_id(Handle handle) {
    Commands *commands = find_commands(handle);
    if (!commands) return 0;
    uint64_t updates = 0;
    for (uint32_t i = 0; i < commands->late_use_count; i++) updates += set_updates(commands->late_uses[i].set);
    if (commands->id && commands->late_updates == updates) return commands->id;
    commands->late_updates = updates;
    return commands->id = write_commands(&commands->list, commands->late_uses, commands->late_use_count);
}

/* Adds a fence behind a submission whose cases are not written yet. */
static void watch_submission(Handle queue, Handle handle, uint64_t program_fence) {
    Commands *commands = find_commands(handle);
    if (!commands || commands->fence || !has_unwritten_captures(commands)) return;
    FenceInfo info = { 8, NULL, 0 };
    Handle device = commands->device;
    if (CALL_NEXT(device, Result, vkCreateFence, (Handle, const FenceInfo *, const void *, uint64_t *))(device, &info, NULL, &commands->fence)) {
        commands->fence = 0;
        return;
    }
    if (CALL_NEXT(queue, Result, vkQueueSubmit, (Handle, uint32_t, const SubmitInfo *, uint64_t))(queue, 0, NULL, commands->fence)) {
        CALL_NEXT(device, void, vkDestroyFence, (Handle, uint64_t, const void *))(device, commands->fence, NULL);
        commands->fence = 0;
        return;
    }
    commands->program_fence = object_id(FENCES, program_fence);
    commands->next_pending = pending;
    pending = commands;
}

static Result layer_vkCreateSemaphore(Handle device, const Header *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateSemaphore, (Handle, const Header *, const void *, uint64_t *))(device, info, allocator, created);
    LOCK;
    for (const Header *at = info->next; at && result == SUCCESS; at = at->next)
        if (at->type == SEMAPHORE_TYPE) identity(SEMAPHORES, *created)->is_timeline = ((const SemaphoreType *)at)->semaphore_type == 1;
    UNLOCK;
    return result;
}

/* Values of binary semaphores are ignored by Vulkan and written as 0. */
static void append_semaphore(Text *line, uint64_t handle, uint64_t stages, uint64_t value) {
    const Identity *semaphore = identity(SEMAPHORES, handle);
    append(line, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", line->data[line->length - 1] == '[' ? "" : ",", semaphore->id, stages,
           semaphore->is_timeline ? value : 0);
}

static void begin_submission(Text *line, Handle queue) {
    append(line, "{\"event\":\"submit\",\"queue\":%" PRIu64 ",\"waits\":[", object_id(QUEUES, (uintptr_t)queue));
}

static void end_submission(Text *line, bool is_last, uint64_t fence) {
    if (is_last && fence) identity(FENCES, fence)->value = 1;
    append(line, "],\"fence\":%" PRIu64 "}", is_last ? object_id(FENCES, fence) : 0);
    write_line(line);
}

/* A submission of nothing that signals a fence after everything before. */
static void record_fence_signal(Handle queue, uint64_t fence) {
    if (!fence) return;
    Text line = { 0 };
    begin_submission(&line, queue);
    append(&line, "],\"commands\":[],\"signals\":[");
    end_submission(&line, true, fence);
}

static Result layer_vkQueueSubmit(Handle queue, uint32_t count, const SubmitInfo *submits, uint64_t fence) {
    enum { STAGE_ANY = 0x10000 };
    LOCK;
    compare_mappings(device_state(queue)->device, true);
    if (count == 0) record_fence_signal(queue, fence);
    for (uint32_t i = 0; i < count; i++) {
        const SubmitInfo *submit = &submits[i];
        const TimelineValues *values = NULL;
        for (const Header *at = submit->next; at; at = at->next)
            if (at->type == TIMELINE_VALUES) values = (const TimelineValues *)at;
        for (uint32_t j = 0; j < submit->command_count; j++) commands_id(submit->commands[j]);
        Text line = { 0 };
        begin_submission(&line, queue);
        for (uint32_t j = 0; j < submit->wait_count; j++)
            append_semaphore(&line, submit->waits[j], submit->stages[j], values && j < values->wait_count ? values->waits[j] : 0);
        append(&line, "],\"commands\":[");
        for (uint32_t j = 0; j < submit->command_count; j++) append(&line, "%s%" PRIu64, j ? "," : "", commands_id(submit->commands[j]));
        append(&line, "],\"signals\":[");
        for (uint32_t j = 0; j < submit->signal_count; j++)
            append_semaphore(&line, submit->signals[j], STAGE_ANY, values && j < values->signal_count ? values->signals[j] : 0);
        end_submission(&line, i + 1 == count, fence);
    }
    UNLOCK;
    Result result = CALL_NEXT(queue, Result, vkQueueSubmit, (Handle, uint32_t, const SubmitInfo *, uint64_t))(queue, count, submits, fence);
    LOCK;
    for (uint32_t i = 0; result == SUCCESS && i < count; i++)
        for (uint32_t j = 0; j < submits[i].command_count; j++) watch_submission(queue, submits[i].commands[j], fence);
    write_ended(device_state(queue)->device, false, 0);
    UNLOCK;
    return result;
}

#define SUBMIT2(name) \
    static Result layer_##name(Handle queue, uint32_t count, const SubmitInfo2 *submits, uint64_t fence) { \
        LOCK; \
        compare_mappings(device_state(queue)->device, true); \
        if (count == 0) record_fence_signal(queue, fence); \
        for (uint32_t i = 0; i < count; i++) { \
            const SubmitInfo2 *submit = &submits[i]; \
            for (uint32_t j = 0; j < submit->command_count; j++) commands_id(submit->commands[j].commands); \
            Text line = { 0 }; \
            begin_submission(&line, queue); \
            for (uint32_t j = 0; j < submit->wait_count; j++) \
                append_semaphore(&line, submit->waits[j].semaphore, submit->waits[j].stages, submit->waits[j].value); \
            append(&line, "],\"commands\":["); \
            for (uint32_t j = 0; j < submit->command_count; j++) append(&line, "%s%" PRIu64, j ? "," : "", commands_id(submit->commands[j].commands)); \
            append(&line, "],\"signals\":["); \
            for (uint32_t j = 0; j < submit->signal_count; j++) \
                append_semaphore(&line, submit->signals[j].semaphore, submit->signals[j].stages, submit->signals[j].value); \
            end_submission(&line, i + 1 == count, fence); \
        } \
        UNLOCK; \
        Result result = CALL_NEXT(queue, Result, name, (Handle, uint32_t, const SubmitInfo2 *, uint64_t))(queue, count, submits, fence); \
        LOCK; \
        for (uint32_t i = 0; result == SUCCESS && i < count; i++) \
            for (uint32_t j = 0; j < submits[i].command_count; j++) watch_submission(queue, submits[i].commands[j].commands, fence); \
        write_ended(device_state(queue)->device, false, 0); \
        UNLOCK; \
        return result; \
    }
SUBMIT2(vkQueueSubmit2)
SUBMIT2(vkQueueSubmit2KHR)

/* Of sparse bindings, the semaphores and the fence are recorded. Accesses to sparse resources are compared by resource, not by memory. */
static Result layer_vkQueueBindSparse(Handle queue, uint32_t count, const BindSparseInfo *infos, uint64_t fence) {
    enum { STAGE_ANY = 0x10000 };
    LOCK;
    if (count == 0) record_fence_signal(queue, fence);
    for (uint32_t i = 0; i < count; i++) {
        const TimelineValues *values = NULL;
        for (const Header *at = infos[i].next; at; at = at->next)
            if (at->type == TIMELINE_VALUES) values = (const TimelineValues *)at;
        Text line = { 0 };
        begin_submission(&line, queue);
        for (uint32_t j = 0; j < infos[i].wait_count; j++)
            append_semaphore(&line, infos[i].waits[j], STAGE_ANY, values && j < values->wait_count ? values->waits[j] : 0);
        append(&line, "],\"commands\":[],\"signals\":[");
        for (uint32_t j = 0; j < infos[i].signal_count; j++)
            append_semaphore(&line, infos[i].signals[j], STAGE_ANY, values && j < values->signal_count ? values->signals[j] : 0);
        end_submission(&line, i + 1 == count, fence);
    }
    UNLOCK;
    return CALL_NEXT(queue, Result, vkQueueBindSparse, (Handle, uint32_t, const BindSparseInfo *, uint64_t))(queue, count, infos, fence);
}

/* A presentation is a submission that reads images. Its signal of an acquired image orders all that follows. */
static Result layer_vkQueuePresentKHR(Handle queue, const PresentInfo *info) {
    /* A stage that the reader names. */
    static const uint64_t PRESENTATION = 1ull << 63;
    enum { STAGE_ANY = 0x10000, READ_MEMORY = 0x8000 };
    static const SubresourceRange ALL = { 1, 0, 1, 0, ~0u };
    LOCK;
    Text list = { 0 };
    append(&list, "{\"op\":\"command\",\"what\":\"vkQueuePresentKHR\",\"is_external\":true,\"accesses\":[");
    for (uint32_t i = 0; i < info->count; i++) {
        const Swapchain *swapchain = find_object(SWAPCHAINS, info->swapchains[i]);
        if (swapchain && info->indices[i] < swapchain->count)
            add_image_access(&list, swapchain->images[info->indices[i]], ALL, PRESENT_LAYOUT, NULL, PRESENTATION, READ_MEMORY, 0);
    }
    append(&list, "]}");
    uint64_t id = write_commands(&list, NULL, 0);
    free(list.data);
    Text line = { 0 };
    begin_submission(&line, queue);
    for (uint32_t i = 0; i < info->wait_count; i++) append_semaphore(&line, info->waits[i], STAGE_ANY, 0);
    append(&line, "],\"commands\":[%" PRIu64 "],\"signals\":[", id);
    end_submission(&line, false, 0);
    UNLOCK;
    return CALL_NEXT(queue, Result, vkQueuePresentKHR, (Handle, const PresentInfo *))(queue, info);
}

static void record_queue(Handle device, Handle queue, uint32_t family, uint32_t index) {
    LOCK;
    if (queue && !find_object(QUEUES, (uintptr_t)queue))
        WRITE_EVENT("{\"event\":\"queue\",\"queue\":%" PRIu64 ",\"device\":%u,\"family\":%u,\"index\":%u}", object_id(QUEUES, (uintptr_t)queue),
                    device_state(device)->generation, family, index);
    UNLOCK;
}

static void layer_vkGetDeviceQueue(Handle device, uint32_t family, uint32_t index, Handle *queue) {
    CALL_NEXT(device, void, vkGetDeviceQueue, (Handle, uint32_t, uint32_t, Handle *))(device, family, index, queue);
    record_queue(device, *queue, family, index);
}

static void layer_vkGetDeviceQueue2(Handle device, const QueueInfo2 *info, Handle *queue) {
    CALL_NEXT(device, void, vkGetDeviceQueue2, (Handle, const QueueInfo2 *, Handle *))(device, info, queue);
    record_queue(device, *queue, info->family, info->index);
}

#define DESTRUCTION(name, kind) \
    static void layer_##name(Handle device, uint64_t destroyed, const void *allocator) { \
        LOCK; \
        free(find_object(kind, destroyed)); \
        forget_object(kind, destroyed); \
        UNLOCK; \
        CALL_NEXT(device, void, name, (Handle, uint64_t, const void *))(device, destroyed, allocator); \
    }
DESTRUCTION(vkDestroyFence, FENCES)
DESTRUCTION(vkDestroySemaphore, SEMAPHORES)

/* Waits of the host. Their events follow the calls. What changes mapped memory meanwhile is no write of the host. The events of its signals
 * precede the calls, and follow what it wrote before. */

static void begin_wait(Handle device) {
    LOCK;
    compare_mappings(device, true);
    UNLOCK;
}

static Result layer_vkQueueWaitIdle(Handle queue) {
    begin_wait(device_state(queue)->device);
    Result result = CALL_NEXT(queue, Result, vkQueueWaitIdle, (Handle))(queue);
    LOCK;
    compare_mappings(device_state(queue)->device, false);
    if (result == SUCCESS) WRITE_EVENT("{\"event\":\"idle\",\"queue\":%" PRIu64 "}", object_id(QUEUES, (uintptr_t)queue));
    write_ended(device_state(queue)->device, false, 0);
    UNLOCK;
    return result;
}

static Result layer_vkDeviceWaitIdle(Handle device) {
    begin_wait(device);
    Result result = CALL_NEXT(device, Result, vkDeviceWaitIdle, (Handle))(device);
    LOCK;
    compare_mappings(device, false);
    if (result == SUCCESS) WRITE_EVENT("{\"event\":\"idle\",\"device\":%u}", device_state(device)->generation);
    write_ended(device, result == SUCCESS, 0);
    UNLOCK;
    return result;
}

static void record_fences(Handle device, uint32_t count, const uint64_t *fences) {
    LOCK;
    compare_mappings(device, false);
    for (uint32_t i = 0; i < count; i++) {
        Identity *fence = identity(FENCES, fences[i]);
        if (fence->value) {
            WRITE_EVENT("{\"event\":\"fence\",\"fence\":%" PRIu64 "}", fence->id);
            write_ended(device, false, fence->id);
        }
        fence->value = 0;
    }
    UNLOCK;
}

/* One of several fences or timeline semaphores is signalled: which one, the program does not know. */
static void record_any(Handle device, int kind, uint32_t count, const uint64_t *handles, const uint64_t *values) {
    Text line = { 0 };
    LOCK;
    compare_mappings(device, false);
    append(&line, "{\"event\":\"wait-any\",\"is_fences\":%s,\"waits\":[", kind == FENCES ? "true" : "false");
    for (uint32_t i = 0; i < count; i++) {
        const Identity *object = identity(kind, handles[i]);
        /* A fence of no submission that is not signalled is not the one. */
        bool is_possible = kind != FENCES || object->value
            || CALL_NEXT(device, Result, vkGetFenceStatus, (Handle, uint64_t))(device, handles[i]) == SUCCESS;
        if (is_possible) append(&line, "%s[%" PRIu64 ",%" PRIu64 "]", line.data[line.length - 1] == '[' ? "" : ",", object->id, values ? values[i] : 0);
    }
    append(&line, "]}");
    write_line(&line);
    write_ended(device, false, 0);
    UNLOCK;
}

static Result layer_vkWaitForFences(Handle device, uint32_t count, const uint64_t *fences, uint32_t all, uint64_t timeout) {
    begin_wait(device);
    Result result = CALL_NEXT(device, Result, vkWaitForFences, (Handle, uint32_t, const uint64_t *, uint32_t, uint64_t))(
        device, count, fences, all, timeout);
    if (result == SUCCESS && (all || count == 1)) record_fences(device, count, fences);
    else if (result == SUCCESS) record_any(device, FENCES, count, fences, NULL);
    return result;
}

static Result layer_vkGetFenceStatus(Handle device, uint64_t fence) {
    begin_wait(device);
    Result result = CALL_NEXT(device, Result, vkGetFenceStatus, (Handle, uint64_t))(device, fence);
    if (result == SUCCESS) record_fences(device, 1, &fence);
    return result;
}

static Result layer_vkGetEventStatus(Handle device, uint64_t event) {
    enum { EVENT_SET = 3 };
    begin_wait(device);
    Result result = CALL_NEXT(device, Result, vkGetEventStatus, (Handle, uint64_t))(device, event);
    LOCK;
    if (result == EVENT_SET) {
        compare_mappings(device, false);
        WRITE_EVENT("{\"event\":\"host-event\",\"event_id\":%" PRIu64 "}", object_id(EVENTS, event));
    }
    UNLOCK;
    return result;
}

static void record_semaphores(Handle device, uint32_t count, const uint64_t *semaphores, const uint64_t *values) {
    LOCK;
    compare_mappings(device, false);
    for (uint32_t i = 0; i < count; i++) {
        Identity *semaphore = identity(SEMAPHORES, semaphores[i]);
        if (semaphore->value < values[i]) {
            WRITE_EVENT("{\"event\":\"semaphore\",\"semaphore\":%" PRIu64 ",\"value\":%" PRIu64 "}", semaphore->id, values[i]);
            semaphore->value = values[i];
        }
    }
    write_ended(device, false, 0);
    UNLOCK;
}

#define TIMELINE(wait, value_of, signal) \
    static Result layer_##wait(Handle device, const SemaphoreWaitInfo *info, uint64_t timeout) { \
        enum { WAIT_ANY = 1 }; \
        begin_wait(device); \
        Result result = CALL_NEXT(device, Result, wait, (Handle, const SemaphoreWaitInfo *, uint64_t))(device, info, timeout); \
        bool is_known = info->count == 1 || !(info->flags & WAIT_ANY); \
        if (result == SUCCESS && is_known) record_semaphores(device, info->count, info->semaphores, info->values); \
        else if (result == SUCCESS) record_any(device, SEMAPHORES, info->count, info->semaphores, info->values); \
        return result; \
    } \
    static Result layer_##value_of(Handle device, uint64_t semaphore, uint64_t *value) { \
        begin_wait(device); \
        Result result = CALL_NEXT(device, Result, value_of, (Handle, uint64_t, uint64_t *))(device, semaphore, value); \
        if (result == SUCCESS) record_semaphores(device, 1, &semaphore, value); \
        return result; \
    } \
    static Result layer_##signal(Handle device, const SemaphoreSignalInfo *info) { \
        begin_wait(device); \
        LOCK; \
        WRITE_EVENT("{\"event\":\"host-signal\",\"semaphore\":%" PRIu64 ",\"value\":%" PRIu64 "}", object_id(SEMAPHORES, info->semaphore), info->value); \
        UNLOCK; \
        return CALL_NEXT(device, Result, signal, (Handle, const SemaphoreSignalInfo *))(device, info); \
    }
static Result layer_vkSetEvent(Handle device, uint64_t event) {
    begin_wait(device);
    LOCK;
    WRITE_EVENT("{\"event\":\"host-set-event\",\"event_id\":%" PRIu64 "}", object_id(EVENTS, event));
    UNLOCK;
    return CALL_NEXT(device, Result, vkSetEvent, (Handle, uint64_t))(device, event);
}

TIMELINE(vkWaitSemaphores, vkGetSemaphoreCounterValue, vkSignalSemaphore)
TIMELINE(vkWaitSemaphoresKHR, vkGetSemaphoreCounterValueKHR, vkSignalSemaphoreKHR)

static Result layer_vkSetDebugUtilsObjectNameEXT(Handle device, const NameInfo *info) {
    enum { NAME_QUEUE = 4, NAME_BUFFER = 9, NAME_IMAGE = 10, NAME_MODULE = 15, NAME_PIPELINE = 19 };
    LOCK;
    Pipeline *pipeline = info->kind == NAME_PIPELINE ? find_object(PIPELINES, info->object) : NULL;
    Bytes *module = info->kind == NAME_MODULE ? find_object(MODULES, info->object) : NULL;
    char **named = pipeline ? &pipeline->name : module ? &module->name : NULL;
    if (named && info->name && *info->name) *named = duplicate(info->name, strlen(info->name) + 1);
    uint64_t id = info->kind == NAME_BUFFER ? buffer_id(info->object) : info->kind == NAME_IMAGE ? image_id(info->object)
        : info->kind == NAME_QUEUE ? object_id(QUEUES, info->object) : 0;
    if (id && info->name) {
        Text line = { 0 };
        append(&line, "{\"event\":\"name\",\"object\":%" PRIu64 ",\"name\":", id);
        append_string(&line, info->name);
        append(&line, "}");
        write_line(&line);
    }
    UNLOCK;
    Result (*next)(Handle, const NameInfo *) = CALL_NEXT(device, Result, vkSetDebugUtilsObjectNameEXT, (Handle, const NameInfo *));
    /* An extension of instances: the loader calls it without a driver that has it. */
    return next ? next(device, info) : SUCCESS;
}

#define QUEUE_FUNCTIONS \
    LAYER_FUNCTION(vkCreateSemaphore) LAYER_FUNCTION(vkDestroyFence) LAYER_FUNCTION(vkDestroySemaphore) \
    LAYER_FUNCTION(vkQueuePresentKHR) LAYER_FUNCTION(vkQueueBindSparse) LAYER_FUNCTION(vkGetDeviceQueue) LAYER_FUNCTION(vkGetDeviceQueue2) LAYER_FUNCTION(vkQueueSubmit) LAYER_FUNCTION(vkQueueSubmit2) \
    LAYER_FUNCTION(vkQueueSubmit2KHR) LAYER_FUNCTION(vkQueueWaitIdle) LAYER_FUNCTION(vkDeviceWaitIdle) LAYER_FUNCTION(vkWaitForFences) \
    LAYER_FUNCTION(vkGetFenceStatus) LAYER_FUNCTION(vkGetEventStatus) LAYER_FUNCTION(vkSetEvent) LAYER_FUNCTION(vkWaitSemaphores) LAYER_FUNCTION(vkWaitSemaphoresKHR) \
    LAYER_FUNCTION(vkGetSemaphoreCounterValue) LAYER_FUNCTION(vkGetSemaphoreCounterValueKHR) LAYER_FUNCTION(vkSignalSemaphore) \
    LAYER_FUNCTION(vkSignalSemaphoreKHR) LAYER_FUNCTION(vkSetDebugUtilsObjectNameEXT)
