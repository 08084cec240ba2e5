/* Commands of a command buffer: state of the next dispatch, transfers, barriers, and what is only counted. */

static void finish_executions(const Commands *secondary);
static void destroy_fence(Commands *commands);

static void forget_pushed_set(BindPoint *point, uint32_t number) {
    DescriptorSet *set = point->pushed_sets[number];
    point->pushed_sets[number] = NULL;
    /* A range of a descriptor buffer is shared. */
    if (set && set->address) return;
    for (uint32_t i = 0; set && i < set->count; i++) free(set->descriptors[i].block.data);
    if (set) free(set->descriptors);
    free(set);
}

/* Ends the use of recorded commands, which the program may change now: their submissions have ended. */
static void release_commands(Commands *commands) {
    /* A primary command buffer writes the cases of its secondary ones. */
    if (commands->captures && !commands->id) finish_executions(commands);
    for (Capture *capture = commands->captures; capture; capture = capture->next) {
        if (commands->id) write_case(capture);
        else if (!capture->is_written) dispatch_kinds[capture->kind].variants[capture->variant].captured--; /* Never submitted. */
    }
    if (commands->fence) {
        for (Commands **at = &pending; *at; at = &(*at)->next_pending)
            if (*at == commands) {
                *at = commands->next_pending;
                break;
            }
        destroy_fence(commands);
    }
    free_captures(commands->device, commands->captures);
    for (unsigned point = 0; point < POINT_COUNT; point++)
        for (unsigned i = 0; i < MAX_SETS; i++) {
            free(commands->points[point].offsets[i]);
            forget_pushed_set(&commands->points[point], i);
        }
    free(commands->list.data);
    free(commands->executed);
    free(commands->late_uses);
    free(commands->attachments);
    *commands = (Commands){ .handle = commands->handle, .device = commands->device, .next_in_pool = commands->next_in_pool };
}

static Result layer_vkAllocateCommandBuffers(Handle device, const CommandBuffersInfo *info, Handle *created) {
    Result result = CALL_NEXT(device, Result, vkAllocateCommandBuffers, (Handle, const CommandBuffersInfo *, Handle *))(device, info, created);
    LOCK;
    Pool *pool = find_object(POOLS, info->pool);
    if (!pool) pool = store_object(POOLS, info->pool, allocate(sizeof *pool));
    for (uint32_t i = 0; result == SUCCESS && i < info->count; i++) {
        Commands *commands = store_object(COMMANDS, (uintptr_t)created[i], allocate(sizeof *commands));
        commands->handle = created[i];
        commands->device = device;
        commands->next_in_pool = pool->first;
        pool->first = commands;
    }
    UNLOCK;
    return result;
}

static void release_pool(uint64_t handle, bool is_destroyed) {
    Pool *pool = find_object(POOLS, handle);
    if (!pool) return;
    for (Commands *commands = pool->first; commands;) {
        Commands *next = commands->next_in_pool;
        release_commands(commands);
        if (is_destroyed) {
            forget_object(COMMANDS, (uintptr_t)commands->handle);
            free(commands);
        }
        commands = next;
    }
    if (!is_destroyed) return;
    free(pool);
    forget_object(POOLS, handle);
}

static void layer_vkFreeCommandBuffers(Handle device, uint64_t handle, uint32_t count, const Handle *freed) {
    LOCK;
    Pool *pool = find_object(POOLS, handle);
    for (uint32_t i = 0; pool && i < count; i++) {
        Commands *commands = freed[i] ? find_commands(freed[i]) : NULL;
        if (!commands) continue;
        release_commands(commands);
        Commands **at = &pool->first;
        while (*at && *at != commands) at = &(*at)->next_in_pool;
        if (*at) *at = commands->next_in_pool;
        forget_object(COMMANDS, (uintptr_t)freed[i]);
        free(commands);
    }
    UNLOCK;
    CALL_NEXT(device, void, vkFreeCommandBuffers, (Handle, uint64_t, uint32_t, const Handle *))(device, handle, count, freed);
}

static void layer_vkDestroyCommandPool(Handle device, uint64_t handle, const void *allocator) {
    LOCK;
    release_pool(handle, true);
    UNLOCK;
    CALL_NEXT(device, void, vkDestroyCommandPool, (Handle, uint64_t, const void *))(device, handle, allocator);
}

static Result layer_vkResetCommandPool(Handle device, uint64_t handle, uint32_t flags) {
    LOCK;
    release_pool(handle, false);
    UNLOCK;
    return CALL_NEXT(device, Result, vkResetCommandPool, (Handle, uint64_t, uint32_t))(device, handle, flags);
}

static void release_handle(Handle handle) {
    LOCK;
    Commands *commands = find_commands(handle);
    if (commands) release_commands(commands);
    UNLOCK;
}

static Result layer_vkBeginCommandBuffer(Handle handle, const void *info) {
    release_handle(handle);
    return CALL_NEXT(handle, Result, vkBeginCommandBuffer, (Handle, const void *))(handle, info);
}

static Result layer_vkResetCommandBuffer(Handle handle, uint32_t flags) {
    release_handle(handle);
    return CALL_NEXT(handle, Result, vkResetCommandBuffer, (Handle, uint32_t))(handle, flags);
}

static void layer_vkCmdExecuteCommands(Handle handle, uint32_t count, const Handle *executed) {
    LOCK;
    Commands *commands = find_commands(handle);
    for (uint32_t i = 0; commands && i < count; i++) {
        Commands *secondary = find_commands(executed[i]);
        if (!secondary) continue;
        if (secondary->list.length) ADD_COMMAND(commands, "%s", secondary->list.data);
        for (uint32_t j = 0; j < secondary->late_use_count; j++) add_late_use(commands, secondary->late_uses[j]);
        commands->executed = realloc(commands->executed, (commands->executed_count + 1) * sizeof *commands->executed);
        if (!commands->executed) abort();
        commands->executed[commands->executed_count++] = secondary;
    }
    UNLOCK;
    CALL_NEXT(handle, void, vkCmdExecuteCommands, (Handle, uint32_t, const Handle *))(handle, count, executed);
}

/* State of the next dispatch. */

static void layer_vkCmdBindPipeline(Handle handle, int32_t point, uint64_t pipeline) {
    CALL_NEXT(handle, void, vkCmdBindPipeline, (Handle, int32_t, uint64_t))(handle, point, pipeline);
    LOCK;
    Commands *commands = find_commands(handle);
    if (commands && point < POINT_COUNT) commands->points[point].pipeline = find_object(PIPELINES, pipeline);
    UNLOCK;
}

static void bind_sets(Handle handle, int32_t point, const BindSetsInfo *info) {
    LOCK;
    Commands *commands = find_commands(handle);
    const uint32_t *offsets = info->offsets;
    uint32_t offset_count = info->offset_count;
    for (uint32_t i = 0; commands && point < POINT_COUNT && i < info->count && info->first + i < MAX_SETS; i++) {
        uint32_t number = info->first + i, dynamic_count = 0;
        const DescriptorSet *set = find_object(DESCRIPTOR_SETS, info->sets[i]);
        BindPoint *bound = &commands->points[point];
        forget_pushed_set(bound, number);
        bound->sets[number] = info->sets[i];
        for (uint32_t j = 0; set && set->layout && j < set->layout->count; j++)
            if (is_dynamic(set->layout->bindings[j].type)) dynamic_count += set->layout->bindings[j].count;
        free(bound->offsets[number]);
        if (dynamic_count > offset_count) dynamic_count = offset_count;
        bound->offsets[number] = dynamic_count ? duplicate(offsets, dynamic_count * sizeof *offsets) : NULL;
        if (dynamic_count) offsets += dynamic_count;
        offset_count -= dynamic_count;
    }
    UNLOCK;
}

static void layer_vkCmdBindDescriptorSets(Handle handle, int32_t point, uint64_t layout, uint32_t first, uint32_t count,
                                          const uint64_t *sets, uint32_t offset_count, const uint32_t *offsets) {
    CALL_NEXT(handle, void, vkCmdBindDescriptorSets,
          (Handle, int32_t, uint64_t, uint32_t, uint32_t, const uint64_t *, uint32_t, const uint32_t *))(
        handle, point, layout, first, count, sets, offset_count, offsets);
    bind_sets(handle, point, &(BindSetsInfo){ 0, NULL, 0, layout, first, count, sets, offset_count, offsets });
}

#define BIND_SETS2(name) \
    static void layer_##name(Handle handle, const BindSetsInfo *info) { \
        CALL_NEXT(handle, void, name, (Handle, const BindSetsInfo *))(handle, info); \
        if (info->stages & COMPUTE_STAGE) bind_sets(handle, COMPUTE_POINT, info); \
        if (info->stages & GRAPHICS_STAGES) bind_sets(handle, GRAPHICS_POINT, info); \
    }
BIND_SETS2(vkCmdBindDescriptorSets2)
BIND_SETS2(vkCmdBindDescriptorSets2KHR)

static DescriptorSet *pushed_set(Handle handle, int32_t point, uint64_t layout, uint32_t number) {
    Commands *commands = find_commands(handle);
    if (!commands || number >= MAX_SETS || point >= POINT_COUNT) return NULL;
    DescriptorSet **set = &commands->points[point].pushed_sets[number];
    if (*set && (*set)->address) forget_pushed_set(&commands->points[point], number);
    if (!*set) *set = allocate(sizeof **set);
    const PipelineLayout *known = find_object(PIPELINE_LAYOUTS, layout);
    if (known && number < known->set_count && !(*set)->layout) {
        (*set)->layout = known->sets[number];
        add_immutable_samplers(*set);
    }
    return *set;
}

#define PUSH_DESCRIPTORS(name, with_template) \
    static void layer_##name(Handle handle, int32_t point, uint64_t layout, uint32_t number, uint32_t count, const DescriptorWrite *writes) { \
        CALL_NEXT(handle, void, name, (Handle, int32_t, uint64_t, uint32_t, uint32_t, const DescriptorWrite *))( \
            handle, point, layout, number, count, writes); \
        LOCK; \
        for (uint32_t i = 0; i < count; i++) write_descriptors(pushed_set(handle, point, layout, number), &writes[i]); \
        UNLOCK; \
    } \
    static void layer_##with_template(Handle handle, uint64_t from, uint64_t layout, uint32_t number, const void *data) { \
        CALL_NEXT(handle, void, with_template, (Handle, uint64_t, uint64_t, uint32_t, const void *))(handle, from, layout, number, data); \
        LOCK; \
        const Template *stored = find_object(TEMPLATES, from); \
        if (stored) write_template(pushed_set(handle, stored->point, layout, number), from, data); \
        UNLOCK; \
    }
PUSH_DESCRIPTORS(vkCmdPushDescriptorSet, vkCmdPushDescriptorSetWithTemplate)
PUSH_DESCRIPTORS(vkCmdPushDescriptorSetKHR, vkCmdPushDescriptorSetWithTemplateKHR)

#define PUSH_DESCRIPTORS2(name, with_template) \
    static void layer_##name(Handle handle, const PushSetInfo *info) { \
        CALL_NEXT(handle, void, name, (Handle, const PushSetInfo *))(handle, info); \
        LOCK; \
        for (int32_t point = 0; point < POINT_COUNT; point++) \
            for (uint32_t i = 0; info->stages & (point == COMPUTE_POINT ? COMPUTE_STAGE : GRAPHICS_STAGES) && i < info->count; i++) \
                write_descriptors(pushed_set(handle, point, info->layout, info->set), &info->writes[i]); \
        UNLOCK; \
    } \
    static void layer_##with_template(Handle handle, const PushTemplateInfo *info) { \
        CALL_NEXT(handle, void, with_template, (Handle, const PushTemplateInfo *))(handle, info); \
        LOCK; \
        const Template *stored = find_object(TEMPLATES, info->from); \
        if (stored) write_template(pushed_set(handle, stored->point, info->layout, info->set), info->from, info->data); \
        UNLOCK; \
    }
PUSH_DESCRIPTORS2(vkCmdPushDescriptorSet2, vkCmdPushDescriptorSetWithTemplate2)
PUSH_DESCRIPTORS2(vkCmdPushDescriptorSet2KHR, vkCmdPushDescriptorSetWithTemplate2KHR)

static void push_constants(Handle handle, const PushConstantsInfo *info) {
    LOCK;
    Commands *commands = find_commands(handle);
    if (commands && info->stages & COMPUTE_STAGE && info->offset <= MAX_PUSH_BYTES && info->size <= MAX_PUSH_BYTES - info->offset) {
        memcpy(commands->push + info->offset, info->values, info->size);
        memset(commands->is_pushed + info->offset, 1, info->size);
    }
    UNLOCK;
}

static void layer_vkCmdPushConstants(Handle handle, uint64_t layout, uint32_t stages, uint32_t offset, uint32_t size, const void *values) {
    CALL_NEXT(handle, void, vkCmdPushConstants, (Handle, uint64_t, uint32_t, uint32_t, uint32_t, const void *))(
        handle, layout, stages, offset, size, values);
    push_constants(handle, &(PushConstantsInfo){ 0, NULL, layout, stages, offset, size, values });
}

#define PUSH_CONSTANTS2(name) \
    static void layer_##name(Handle handle, const PushConstantsInfo *info) { \
        CALL_NEXT(handle, void, name, (Handle, const PushConstantsInfo *))(handle, info); \
        push_constants(handle, info); \
    }
PUSH_CONSTANTS2(vkCmdPushConstants2)
PUSH_CONSTANTS2(vkCmdPushConstants2KHR)

/* Barriers. */

/* The events of the wait that is recorded, with the lock held: empty, or a member that starts with a comma. */
static const char *waited_events = "";

/* Appends a memory barrier; `resource` restricts it, and starts with a comma. */
static void add_barrier(Commands *commands, MemoryBarrier2 barrier, const char *resource) {
    ADD_COMMAND(commands, "{\"op\":\"barrier\",\"from\":[%" PRIu64 ",%" PRIu64 "],\"to\":[%" PRIu64 ",%" PRIu64 "]%s%s}", barrier.from_stages,
                barrier.from, barrier.to_stages, barrier.to, resource, waited_events);
}

static void add_buffer_barrier(Commands *commands, MemoryBarrier2 barrier, uint32_t from_family, uint32_t to_family, uint64_t buffer,
                               uint64_t offset, uint64_t size) {
    char resource[192];
    snprintf(resource, sizeof resource, ",\"buffer\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"size\":%" PRIu64 ",\"families\":[%u,%u]", buffer_id(buffer),
             offset, size, from_family, to_family);
    add_barrier(commands, barrier, resource);
}

static void add_image_barrier(Commands *commands, MemoryBarrier2 barrier, const int32_t layouts[2], const uint32_t families[2], uint64_t image,
                              SubresourceRange range) {
    char resource[256];
    snprintf(resource, sizeof resource, ",\"image\":%" PRIu64 ",\"range\":[%u,%u,%u,%u],\"aspects\":%u,\"families\":[%u,%u],\"layouts\":[%d,%d]",
             image_id(image), range.level, range.levels, range.layer, range.layers, range.aspect, families[0], families[1], layouts[0], layouts[1]);
    add_barrier(commands, barrier, resource);
}

/* Appends the barriers of a call with 32-bit masks. Without any, it orders execution. */
static void add_barriers(Commands *commands, uint32_t from, uint32_t to, uint32_t memory_count, const MemoryBarrier *memory,
                         uint32_t buffer_count, const BufferBarrier *buffers, uint32_t image_count, const ImageBarrier *images) {
    /* Each barrier orders execution as well. */
    if (!memory_count && !buffer_count && !image_count) add_barrier(commands, (MemoryBarrier2){ 0, NULL, from, 0, to, 0 }, "");
    for (uint32_t i = 0; i < memory_count; i++) add_barrier(commands, (MemoryBarrier2){ 0, NULL, from, memory[i].from, to, memory[i].to }, "");
    for (uint32_t i = 0; i < buffer_count; i++)
        add_buffer_barrier(commands, (MemoryBarrier2){ 0, NULL, from, buffers[i].from, to, buffers[i].to }, buffers[i].from_family,
                           buffers[i].to_family, buffers[i].buffer, buffers[i].offset, buffers[i].size);
    for (uint32_t i = 0; i < image_count; i++)
        add_image_barrier(commands, (MemoryBarrier2){ 0, NULL, from, images[i].from, to, images[i].to },
                          (int32_t[2]){ images[i].from_layout, images[i].to_layout },
                          (uint32_t[2]){ images[i].from_family, images[i].to_family }, images[i].image, images[i].range);
}

static void add_dependency(Commands *commands, const DependencyInfo *info) {
    for (uint32_t i = 0; i < info->memory_count; i++) add_barrier(commands, info->memory[i], "");
    for (uint32_t i = 0; i < info->buffer_count; i++) {
        const BufferBarrier2 *at = &info->buffers[i];
        add_buffer_barrier(commands, (MemoryBarrier2){ 0, NULL, at->from_stages, at->from, at->to_stages, at->to }, at->from_family, at->to_family,
                           at->buffer, at->offset, at->size);
    }
    for (uint32_t i = 0; i < info->image_count; i++) {
        const ImageBarrier2 *at = &info->images[i];
        add_image_barrier(commands, (MemoryBarrier2){ 0, NULL, at->from_stages, at->from, at->to_stages, at->to },
                          (int32_t[2]){ at->from_layout, at->to_layout }, (uint32_t[2]){ at->from_family, at->to_family }, at->image, at->range);
    }
}

static void layer_vkCmdPipelineBarrier(Handle handle, uint32_t from, uint32_t to, uint32_t flags, uint32_t memory_count, const MemoryBarrier *memory,
                                       uint32_t buffer_count, const BufferBarrier *buffers, uint32_t image_count, const ImageBarrier *images) {
    CALL_NEXT(handle, void, vkCmdPipelineBarrier,
              (Handle, uint32_t, uint32_t, uint32_t, uint32_t, const MemoryBarrier *, uint32_t, const BufferBarrier *, uint32_t, const ImageBarrier *))(
        handle, from, to, flags, memory_count, memory, buffer_count, buffers, image_count, images);
    WITH_COMMANDS(add_barriers(commands, from, to, memory_count, memory, buffer_count, buffers, image_count, images););
}

/* Events. A wait is a barrier whose first scope has the commands before the signals of its events. */

static void add_event_list(char list[512], uint32_t count, const uint64_t *events) {
    size_t length = (size_t)snprintf(list, 512, ",\"events\":[");
    for (uint32_t i = 0; i < count && length + 32 < 512; i++)
        length += (size_t)snprintf(list + length, 512 - length, "%s%" PRIu64, i ? "," : "", object_id(EVENTS, events[i]));
    snprintf(list + length, 512 - length, "]");
}

static void layer_vkCmdWaitEvents(Handle handle, uint32_t count, const uint64_t *events, uint32_t from, uint32_t to, uint32_t memory_count,
                                  const MemoryBarrier *memory, uint32_t buffer_count, const BufferBarrier *buffers, uint32_t image_count,
                                  const ImageBarrier *images) {
    CALL_NEXT(handle, void, vkCmdWaitEvents,
              (Handle, uint32_t, const uint64_t *, uint32_t, uint32_t, uint32_t, const MemoryBarrier *, uint32_t, const BufferBarrier *, uint32_t,
               const ImageBarrier *))(handle, count, events, from, to, memory_count, memory, buffer_count, buffers, image_count, images);
    char list[512];
    WITH_COMMANDS(add_event_list(list, count, events); waited_events = list;
                  add_barriers(commands, from, to, memory_count, memory, buffer_count, buffers, image_count, images); waited_events = "";);
}

static void layer_vkCmdSetEvent(Handle handle, uint64_t event, uint32_t stages) {
    CALL_NEXT(handle, void, vkCmdSetEvent, (Handle, uint64_t, uint32_t))(handle, event, stages);
    WITH_COMMANDS(ADD_COMMAND(commands, "{\"op\":\"set-event\",\"event\":%" PRIu64 ",\"stages\":%u}", object_id(EVENTS, event), stages););
}

#define DEPENDENCIES(barrier, wait, set) \
    static void layer_##barrier(Handle handle, const DependencyInfo *info) { \
        CALL_NEXT(handle, void, barrier, (Handle, const DependencyInfo *))(handle, info); \
        WITH_COMMANDS(add_dependency(commands, info);); \
    } \
    static void layer_##wait(Handle handle, uint32_t count, const uint64_t *events, const DependencyInfo *infos) { \
        CALL_NEXT(handle, void, wait, (Handle, uint32_t, const uint64_t *, const DependencyInfo *))(handle, count, events, infos); \
        char list[512]; \
        WITH_COMMANDS(for (uint32_t i = 0; i < count; i++) { \
            add_event_list(list, 1, &events[i]); \
            waited_events = list; \
            add_dependency(commands, &infos[i]); \
        } waited_events = "";); \
    } \
    static void layer_##set(Handle handle, uint64_t event, const DependencyInfo *info) { \
        CALL_NEXT(handle, void, set, (Handle, uint64_t, const DependencyInfo *))(handle, event, info); \
        WITH_COMMANDS(uint64_t stages = 0; \
                      for (uint32_t i = 0; i < info->memory_count; i++) stages |= info->memory[i].from_stages; \
                      for (uint32_t i = 0; i < info->buffer_count; i++) stages |= info->buffers[i].from_stages; \
                      for (uint32_t i = 0; i < info->image_count; i++) stages |= info->images[i].from_stages; \
                      ADD_COMMAND(commands, "{\"op\":\"set-event\",\"event\":%" PRIu64 ",\"stages\":%" PRIu64 "}", object_id(EVENTS, event), stages);); \
    }
DEPENDENCIES(vkCmdPipelineBarrier2, vkCmdWaitEvents2, vkCmdSetEvent2)
DEPENDENCIES(vkCmdPipelineBarrier2KHR, vkCmdWaitEvents2KHR, vkCmdSetEvent2KHR)

/* Labels, and commands whose accesses are not recorded. */

static void layer_vkCmdBeginDebugUtilsLabelEXT(Handle handle, const LabelInfo *info) {
    void (*next)(Handle, const LabelInfo *) = CALL_NEXT(handle, void, vkCmdBeginDebugUtilsLabelEXT, (Handle, const LabelInfo *));
    if (next) next(handle, info);
    WITH_COMMANDS(ADD_COMMAND(commands, "{\"op\":\"label\",\"name\":"); append_string(&commands->list, info->name ? info->name : "");
                  append(&commands->list, "}"););
}

static void layer_vkCmdEndDebugUtilsLabelEXT(Handle handle) {
    void (*next)(Handle) = CALL_NEXT(handle, void, vkCmdEndDebugUtilsLabelEXT, (Handle));
    if (next) next(handle);
    WITH_COMMANDS(ADD_COMMAND(commands, "{\"op\":\"end-label\"}"););
}

/* Shader objects replace a pipeline that is bound. */
static void layer_vkCmdBindShadersEXT(Handle handle, uint32_t count, const void *stages, const void *shaders) {
    CALL_NEXT(handle, void, vkCmdBindShadersEXT, (Handle, uint32_t, const void *, const void *))(handle, count, stages, shaders);
    WITH_COMMANDS(commands->points[COMPUTE_POINT].pipeline = commands->points[GRAPHICS_POINT].pipeline = NULL;);
}

#define COMMAND_FUNCTIONS \
    LAYER_FUNCTION(vkCmdBindDescriptorSets2) LAYER_FUNCTION(vkCmdBindDescriptorSets2KHR) LAYER_FUNCTION(vkCmdPushConstants2) \
    LAYER_FUNCTION(vkCmdPushConstants2KHR) LAYER_FUNCTION(vkCmdPushDescriptorSet2) LAYER_FUNCTION(vkCmdPushDescriptorSet2KHR) \
    LAYER_FUNCTION(vkCmdPushDescriptorSetWithTemplate2) LAYER_FUNCTION(vkCmdPushDescriptorSetWithTemplate2KHR) \
    LAYER_FUNCTION(vkAllocateCommandBuffers) LAYER_FUNCTION(vkFreeCommandBuffers) LAYER_FUNCTION(vkDestroyCommandPool) \
    LAYER_FUNCTION(vkResetCommandPool) LAYER_FUNCTION(vkBeginCommandBuffer) LAYER_FUNCTION(vkResetCommandBuffer) \
    LAYER_FUNCTION(vkCmdExecuteCommands) LAYER_FUNCTION(vkCmdBindPipeline) LAYER_FUNCTION(vkCmdBindDescriptorSets) \
    LAYER_FUNCTION(vkCmdPushDescriptorSet) LAYER_FUNCTION(vkCmdPushDescriptorSetKHR) LAYER_FUNCTION(vkCmdPushDescriptorSetWithTemplate) \
    LAYER_FUNCTION(vkCmdPushDescriptorSetWithTemplateKHR) LAYER_FUNCTION(vkCmdPushConstants) LAYER_FUNCTION(vkCmdPipelineBarrier) \
    LAYER_FUNCTION(vkCmdPipelineBarrier2) LAYER_FUNCTION(vkCmdPipelineBarrier2KHR) LAYER_FUNCTION(vkCmdWaitEvents) \
    LAYER_FUNCTION(vkCmdWaitEvents2) LAYER_FUNCTION(vkCmdWaitEvents2KHR) LAYER_FUNCTION(vkCmdBeginDebugUtilsLabelEXT) \
    LAYER_FUNCTION(vkCmdEndDebugUtilsLabelEXT) LAYER_FUNCTION(vkCmdBindShadersEXT) \
    LAYER_FUNCTION(vkCmdSetEvent) LAYER_FUNCTION(vkCmdSetEvent2) LAYER_FUNCTION(vkCmdSetEvent2KHR)
