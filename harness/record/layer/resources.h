/* Memory, buffers, images, views and samplers. */

static Result layer_vkAllocateMemory(Handle device, const MemoryAllocateInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkAllocateMemory, (Handle, const MemoryAllocateInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    LOCK;
    if (result == SUCCESS) {
        enum { COHERENT = 4 };
        forget_object(MEMORIES, *created);
        identity(MEMORIES, *created)->value = info->size;
        MemoryProperties types = { 0 };
        const DeviceState *state = device_state(device);
        state->instance->get_memory_properties(state->physical, &types);
        bool is_coherent = info->index >= types.count || types.types[info->index].flags & COHERENT;
        WRITE_EVENT("{\"event\":\"memory\",\"memory\":%" PRIu64 ",\"size\":%" PRIu64 ",\"is_coherent\":%s}", object_id(MEMORIES, *created), info->size,
                    is_coherent ? "true" : "false");
    }
    UNLOCK;
    return result;
}

static Result layer_vkCreateBuffer(Handle device, const BufferInfo *info, const void *allocator, uint64_t *created) {
    BufferInfo driver_info = *info;
    driver_info.usage |= 1; /* A source of transfers. */
    Result result = CALL_NEXT(device, Result, vkCreateBuffer, (Handle, const BufferInfo *, const void *, uint64_t *))(
        device, &driver_info, allocator, created);
    if (result != SUCCESS) return result;
    Buffer *buffer = allocate(sizeof *buffer);
    LOCK;
    *buffer = (Buffer){ .id = ++last_id, .handle = *created, .size = info->size, .device = device };
    store_object(BUFFERS, *created, buffer);
    WRITE_EVENT("{\"event\":\"buffer\",\"buffer\":%" PRIu64 ",\"size\":%" PRIu64 ",\"is_exclusive\":%s}", buffer->id, info->size,
                info->sharing ? "false" : "true");
    UNLOCK;
    return result;
}

static void layer_vkDestroyBuffer(Handle device, uint64_t destroyed, const void *allocator) {
    LOCK;
    for (Buffer **at = &addressed; *at; at = &(*at)->next)
        if ((*at)->handle == destroyed) {
            *at = (*at)->next;
            break;
        }
    Buffer *buffer = find_object(BUFFERS, destroyed);
    for (Buffer **at = &bound_buffers; *at; at = &(*at)->next_bound)
        if (*at == buffer) {
            *at = buffer->next_bound;
            break;
        }
    if (buffer && buffer->is_watched) watched_bytes -= buffer->size;
    free(buffer);
    forget_object(BUFFERS, destroyed);
    UNLOCK;
    CALL_NEXT(device, void, vkDestroyBuffer, (Handle, uint64_t, const void *))(device, destroyed, allocator);
}

/* Returns the buffer that has an address, or NULL. */
static Buffer *find_addressed(uint64_t address) {
    Buffer *buffer = addressed;
    while (buffer && (address < buffer->address || address - buffer->address >= buffer->size)) buffer = buffer->next;
    return buffer;
}

#define RECORD_ADDRESS(name) \
    static uint64_t layer_##name(Handle device, const AddressInfo *info) { \
        uint64_t address = CALL_NEXT(device, uint64_t, name, (Handle, const AddressInfo *))(device, info); \
        LOCK; \
        Buffer *buffer = find_object(BUFFERS, info->buffer); \
        if (buffer && !buffer->address) { \
            buffer->address = address; \
            buffer->next = addressed; \
            addressed = buffer; \
        } \
        UNLOCK; \
        return address; \
    }
RECORD_ADDRESS(vkGetBufferDeviceAddress)
RECORD_ADDRESS(vkGetBufferDeviceAddressKHR)
RECORD_ADDRESS(vkGetBufferDeviceAddressEXT)

static void record_image(uint64_t handle, const ImageInfo *info) {
    enum { EXTERNAL_IMAGE = 1000072001 };
    Image *image = store_object(IMAGES, handle, allocate(sizeof *image));
    *image = (Image){ ++last_id, *info };
    int32_t layout = info->layout;
    /* Another API may use it. */
    for (const Header *at = info->next; at; at = at->next)
        if (at->type == EXTERNAL_IMAGE) layout = -1;
    WRITE_EVENT("{\"event\":\"image\",\"image\":%" PRIu64 ",\"format\":%d,\"size\":[%u,%u,%u],\"levels\":%u,\"layers\":%u,\"aspects\":%u,\"layout\":%d,\"is_exclusive\":%s}",
                image->id, info->format, info->size[0], info->size[1], info->size[2], info->levels, info->layers, format_aspects(info->format), layout,
                info->sharing ? "false" : "true");
}

static Result layer_vkCreateImage(Handle device, const ImageInfo *info, const void *allocator, uint64_t *created) {
    enum { TRANSIENT = 0x40 };
    ImageInfo driver_info = *info;
    if (!(driver_info.usage & TRANSIENT)) driver_info.usage |= 1;
    Result result = CALL_NEXT(device, Result, vkCreateImage, (Handle, const ImageInfo *, const void *, uint64_t *))(
        device, &driver_info, allocator, created);
    LOCK;
    if (result == SUCCESS) record_image(*created, &driver_info);
    UNLOCK;
    return result;
}

static Result layer_vkCreateSwapchainKHR(Handle device, const SwapchainInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateSwapchainKHR, (Handle, const SwapchainInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    LOCK;
    if (result == SUCCESS) {
        Swapchain *swapchain = store_object(SWAPCHAINS, *created, allocate(sizeof *swapchain));
        swapchain->info = *info;
    }
    UNLOCK;
    return result;
}

static Result layer_vkGetSwapchainImagesKHR(Handle device, uint64_t handle, uint32_t *count, uint64_t *images) {
    Result result = CALL_NEXT(device, Result, vkGetSwapchainImagesKHR, (Handle, uint64_t, uint32_t *, uint64_t *))(device, handle, count, images);
    LOCK;
    Swapchain *swapchain = find_object(SWAPCHAINS, handle);
    if (result == SUCCESS && swapchain && images && !swapchain->images) {
        const SwapchainInfo *info = &swapchain->info;
        /* No contents are copied: the usage may lack transfers. */
        ImageInfo image = { 14, NULL, 0, 1, info->format, { info->size[0], info->size[1], 1 }, 1, info->layers, 1, 0, info->usage & ~1u, info->sharing, 0, NULL, 0 };
        for (uint32_t i = 0; i < *count; i++) record_image(images[i], &image);
        swapchain->count = *count;
        swapchain->images = duplicate(images, *count * sizeof *images);
    }
    UNLOCK;
    return result;
}

static void layer_vkDestroyImage(Handle device, uint64_t destroyed, const void *allocator) {
    LOCK;
    forget_object(IMAGES, destroyed);
    UNLOCK;
    CALL_NEXT(device, void, vkDestroyImage, (Handle, uint64_t, const void *))(device, destroyed, allocator);
}

/* Returns the part of a mapping that a buffer has, from its start in the mapping. */
static bool mapped_part(const Mapping *mapping, const Buffer *buffer, uint64_t *from, uint64_t *to) {
    if (buffer->memory != mapping->memory) return false;
    uint64_t end = buffer->offset + buffer->size, mapped_end = mapping->offset + mapping->size;
    *from = (buffer->offset > mapping->offset ? buffer->offset : mapping->offset) - mapping->offset;
    *to = end < mapped_end ? end : mapped_end;
    *to = *to > mapping->offset ? *to - mapping->offset : 0;
    return *from < *to;
}

/* Copies the contents of a buffer that is mapped, to compare them later. */
static void watch_buffer(const Mapping *mapping, Buffer *buffer) {
    uint64_t from, to;
    if (!mapped_part(mapping, buffer, &from, &to)) return;
    if (!buffer->is_watched && watched_bytes + buffer->size > MAX_WATCHED_BYTES) {
        WRITE_EVENT("{\"event\":\"unchecked-mapping\",\"memory\":%" PRIu64 ",\"size\":%" PRIu64 "}", mapping->memory, buffer->size);
        return;
    }
    if (!buffer->is_watched) watched_bytes += buffer->size;
    buffer->is_watched = true;
    memcpy(mapping->copy + from, mapping->pointer + from, to - from);
}

static void record_buffer_binding(Handle device, uint64_t handle, uint64_t memory, uint64_t offset) {
    (void)device;
    Buffer *buffer = find_object(BUFFERS, handle);
    if (!buffer) return;
    buffer->memory = object_id(MEMORIES, memory);
    buffer->offset = offset;
    buffer->next_bound = bound_buffers;
    bound_buffers = buffer;
    for (const Mapping *mapping = mappings; mapping; mapping = mapping->next) watch_buffer(mapping, buffer);
    WRITE_EVENT("{\"event\":\"bind\",\"buffer\":%" PRIu64 ",\"memory\":%" PRIu64 ",\"offset\":%" PRIu64 "}", buffer->id, buffer->memory, offset);
}

/* An image of a swapchain is bound without memory. */
static void record_image_binding(Handle device, uint64_t handle, uint64_t memory, uint64_t offset) {
    MemoryRequirements needed;
    if (!memory) return;
    CALL_NEXT(device, void, vkGetImageMemoryRequirements, (Handle, uint64_t, MemoryRequirements *))(device, handle, &needed);
    WRITE_EVENT("{\"event\":\"bind\",\"image\":%" PRIu64 ",\"memory\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"size\":%" PRIu64 "}", image_id(handle),
                object_id(MEMORIES, memory), offset, needed.size);
}

#define RECORD_BINDINGS(name, single, record) \
    static Result layer_##single(Handle device, uint64_t object, uint64_t memory, uint64_t offset) { \
        Result result = CALL_NEXT(device, Result, single, (Handle, uint64_t, uint64_t, uint64_t))(device, object, memory, offset); \
        LOCK; \
        if (result == SUCCESS) record(device, object, memory, offset); \
        UNLOCK; \
        return result; \
    } \
    RECORD_BINDINGS2(name, record) \
    RECORD_BINDINGS2(name##KHR, record)
#define RECORD_BINDINGS2(name, record) \
    static Result layer_##name(Handle device, uint32_t count, const BindInfo *all) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, uint32_t, const BindInfo *))(device, count, all); \
        LOCK; \
        for (uint32_t i = 0; result == SUCCESS && i < count; i++) record(device, all[i].object, all[i].memory, all[i].offset); \
        UNLOCK; \
        return result; \
    }
RECORD_BINDINGS(vkBindBufferMemory2, vkBindBufferMemory, record_buffer_binding)
RECORD_BINDINGS(vkBindImageMemory2, vkBindImageMemory, record_image_binding)

#define HOST_TRANSITION(name) \
    static Result layer_##name(Handle device, uint32_t count, const HostTransition *all) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, uint32_t, const HostTransition *))(device, count, all); \
        LOCK; \
        for (uint32_t i = 0; result == SUCCESS && i < count; i++) \
            WRITE_EVENT("{\"event\":\"host-layout\",\"image\":%" PRIu64 ",\"range\":[%u,%u,%u,%u],\"aspects\":%u,\"layout\":%d}", image_id(all[i].image), \
                        all[i].range.level, all[i].range.levels, all[i].range.layer, all[i].range.layers, all[i].range.aspect, all[i].to_layout); \
        UNLOCK; \
        return result; \
    }
HOST_TRANSITION(vkTransitionImageLayout)
HOST_TRANSITION(vkTransitionImageLayoutEXT)

/* Mapped memory. */

static void record_mapping(Handle device, uint64_t memory, uint64_t offset, uint64_t size, void *pointer) {
    const Identity *identified = identity(MEMORIES, memory);
    if (size == WHOLE_SIZE) size = identified->value > offset ? identified->value - offset : 0;
    Mapping *mapping = store_object(MAPPINGS, memory, allocate(sizeof *mapping));
    *mapping = (Mapping){ memory, identified->id, offset, size, pointer, allocate(size), device, mappings };
    mappings = mapping;
    WRITE_EVENT("{\"event\":\"map\",\"memory\":%" PRIu64 ",\"range\":[%" PRIu64 ",%" PRIu64 "]}", mapping->memory, offset, offset + size);
    for (Buffer *buffer = bound_buffers; buffer; buffer = buffer->next_bound) watch_buffer(mapping, buffer);
}

static Result layer_vkMapMemory(Handle device, uint64_t memory, uint64_t offset, uint64_t size, uint32_t flags, void **pointer) {
    Result result = CALL_NEXT(device, Result, vkMapMemory, (Handle, uint64_t, uint64_t, uint64_t, uint32_t, void **))(
        device, memory, offset, size, flags, pointer);
    LOCK;
    if (result == SUCCESS) record_mapping(device, memory, offset, size, *pointer);
    UNLOCK;
    return result;
}

#define MAP_MEMORY2(name) \
    static Result layer_##name(Handle device, const MapInfo *info, void **pointer) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, const MapInfo *, void **))(device, info, pointer); \
        LOCK; \
        if (result == SUCCESS) record_mapping(device, info->memory, info->offset, info->size, *pointer); \
        UNLOCK; \
        return result; \
    }
MAP_MEMORY2(vkMapMemory2)
MAP_MEMORY2(vkMapMemory2KHR)

/* Marks the buffers with an address in mapped memory, which commands may follow, with the number of this search. Buffers that are not marked may
 * be destroyed before the commands are submitted. */
static uint64_t search_addresses(Handle device) {
    static uint64_t last_search;
    uint64_t low = ~(uint64_t)0, high = 0, scanned = 0;
    last_search++;
    for (const Buffer *buffer = addressed; buffer; buffer = buffer->next) {
        if (buffer->address < low) low = buffer->address;
        if (buffer->address + buffer->size > high) high = buffer->address + buffer->size;
    }
    for (const Mapping *mapping = mappings; mapping; mapping = mapping->next)
        for (const Buffer *holder = bound_buffers; holder && mapping->device == device; holder = holder->next_bound) {
            uint64_t at, end, word;
            if (!mapped_part(mapping, holder, &at, &end) || scanned + (end - at) > MAX_WATCHED_BYTES) continue;
            scanned += end - at;
            for (; at + sizeof word <= end; at += sizeof word) {
                memcpy(&word, mapping->pointer + at, sizeof word);
                Buffer *found = word >= low && word < high ? find_addressed(word) : NULL;
                if (found && found->device == device) found->pointed_at = last_search;
            }
        }
    return last_search;
}

/* Compares mapped buffers with their copies. With `is_reported`, what has changed was written by the host, or by commands that run. */
static void compare_mappings(Handle device, bool is_reported) {
    enum { MAX_RANGES = 256 };
    for (Mapping *mapping = mappings; mapping; mapping = mapping->next) {
        if (mapping->device != device) continue;
        Text line = { 0 };
        append(&line, "{\"event\":\"host-writes\",\"memory\":%" PRIu64 ",\"ranges\":[", mapping->memory);
        unsigned count = 0;
        for (const Buffer *buffer = bound_buffers; buffer; buffer = buffer->next_bound) {
            uint64_t at, end;
            if (!buffer->is_watched || !mapped_part(mapping, buffer, &at, &end)) continue;
            if (memcmp(mapping->copy + at, mapping->pointer + at, end - at) == 0) continue;
            uint64_t start = at;
            while (is_reported && at < end && count < MAX_RANGES) {
                while (at < end && mapping->copy[at] == mapping->pointer[at]) at++;
                uint64_t from = at;
                while (at < end && mapping->copy[at] != mapping->pointer[at]) at++;
                if (from < at) append(&line, "%s[%" PRIu64 ",%" PRIu64 "]", count++ ? "," : "", mapping->offset + from, mapping->offset + at);
            }
            memcpy(mapping->copy + start, mapping->pointer + start, end - start);
        }
        append(&line, "]}");
        if (count) write_line(&line);
        free(line.data);
    }
}

static void forget_mapping(uint64_t memory) {
    Mapping *mapping = find_object(MAPPINGS, memory);
    if (!mapping) return;
    for (Mapping **at = &mappings; *at; at = &(*at)->next)
        if (*at == mapping) {
            *at = mapping->next;
            break;
        }
    for (Buffer *buffer = bound_buffers; buffer; buffer = buffer->next_bound)
        if (buffer->memory == mapping->memory && buffer->is_watched) {
            watched_bytes -= buffer->size;
            buffer->is_watched = false;
        }
    free(mapping->copy);
    free(mapping);
    forget_object(MAPPINGS, memory);
}

static void record_ranges(const char *event, uint32_t count, const MappedRange *ranges) {
    for (uint32_t i = 0; i < count; i++) {
        const Mapping *mapping = find_object(MAPPINGS, ranges[i].memory);
        if (!mapping) continue;
        uint64_t end = ranges[i].size == WHOLE_SIZE ? mapping->offset + mapping->size : ranges[i].offset + ranges[i].size;
        WRITE_EVENT("{\"event\":\"%s\",\"memory\":%" PRIu64 ",\"range\":[%" PRIu64 ",%" PRIu64 "]}", event, mapping->memory, ranges[i].offset, end);
    }
}

static Result layer_vkFlushMappedMemoryRanges(Handle device, uint32_t count, const MappedRange *ranges) {
    LOCK;
    compare_mappings(device, true);
    record_ranges("flush", count, ranges);
    UNLOCK;
    return CALL_NEXT(device, Result, vkFlushMappedMemoryRanges, (Handle, uint32_t, const MappedRange *))(device, count, ranges);
}

/* What the host has written is compared before: an invalidation may discard what is not flushed. */
static Result layer_vkInvalidateMappedMemoryRanges(Handle device, uint32_t count, const MappedRange *ranges) {
    LOCK;
    compare_mappings(device, true);
    UNLOCK;
    Result result = CALL_NEXT(device, Result, vkInvalidateMappedMemoryRanges, (Handle, uint32_t, const MappedRange *))(device, count, ranges);
    LOCK;
    compare_mappings(device, false);
    record_ranges("invalidate", count, ranges);
    UNLOCK;
    return result;
}

static void end_mapping(Handle device, uint64_t memory) {
    LOCK;
    compare_mappings(device, true);
    WRITE_EVENT("{\"event\":\"unmap\",\"memory\":%" PRIu64 "}", object_id(MEMORIES, memory));
    forget_mapping(memory);
    UNLOCK;
}

static void layer_vkUnmapMemory(Handle device, uint64_t memory) {
    end_mapping(device, memory);
    CALL_NEXT(device, void, vkUnmapMemory, (Handle, uint64_t))(device, memory);
}

#define UNMAP_MEMORY2(name) \
    static Result layer_##name(Handle device, const UnmapInfo *info) { \
        end_mapping(device, info->memory); \
        return CALL_NEXT(device, Result, name, (Handle, const UnmapInfo *))(device, info); \
    }
UNMAP_MEMORY2(vkUnmapMemory2)
UNMAP_MEMORY2(vkUnmapMemory2KHR)

static void layer_vkFreeMemory(Handle device, uint64_t memory, const void *allocator) {
    LOCK;
    compare_mappings(device, true);
    forget_mapping(memory);
    free(find_object(MEMORIES, memory));
    forget_object(MEMORIES, memory);
    UNLOCK;
    CALL_NEXT(device, void, vkFreeMemory, (Handle, uint64_t, const void *))(device, memory, allocator);
}

#define RECORD_CREATION(name, kind, type) \
    static Result layer_##name(Handle device, const type *info, const void *allocator, uint64_t *created) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, const type *, const void *, uint64_t *))(device, info, allocator, created); \
        LOCK; \
        if (result == SUCCESS) store_object(kind, *created, duplicate(info, sizeof *info)); \
        UNLOCK; \
        return result; \
    }
RECORD_CREATION(vkCreateImageView, VIEWS, ViewInfo)
RECORD_CREATION(vkCreateSampler, SAMPLERS, SamplerInfo)
RECORD_CREATION(vkCreateBufferView, BUFFER_VIEWS, BufferViewInfo)

#define RESOURCE_FUNCTIONS \
    LAYER_FUNCTION(vkAllocateMemory) LAYER_FUNCTION(vkFreeMemory) LAYER_FUNCTION(vkMapMemory) LAYER_FUNCTION(vkMapMemory2) LAYER_FUNCTION(vkMapMemory2KHR) LAYER_FUNCTION(vkUnmapMemory) LAYER_FUNCTION(vkUnmapMemory2) LAYER_FUNCTION(vkUnmapMemory2KHR) \
    LAYER_FUNCTION(vkTransitionImageLayout) LAYER_FUNCTION(vkTransitionImageLayoutEXT) LAYER_FUNCTION(vkFlushMappedMemoryRanges) LAYER_FUNCTION(vkInvalidateMappedMemoryRanges) \
    LAYER_FUNCTION(vkCreateBuffer) LAYER_FUNCTION(vkDestroyBuffer) LAYER_FUNCTION(vkGetBufferDeviceAddress) \
    LAYER_FUNCTION(vkGetBufferDeviceAddressKHR) LAYER_FUNCTION(vkGetBufferDeviceAddressEXT) LAYER_FUNCTION(vkCreateImage) \
    LAYER_FUNCTION(vkDestroyImage) LAYER_FUNCTION(vkCreateSwapchainKHR) LAYER_FUNCTION(vkGetSwapchainImagesKHR) \
    LAYER_FUNCTION(vkBindBufferMemory) LAYER_FUNCTION(vkBindBufferMemory2) LAYER_FUNCTION(vkBindBufferMemory2KHR) \
    LAYER_FUNCTION(vkBindImageMemory) LAYER_FUNCTION(vkBindImageMemory2) LAYER_FUNCTION(vkBindImageMemory2KHR) LAYER_FUNCTION(vkCreateImageView) \
    LAYER_FUNCTION(vkCreateBufferView) LAYER_FUNCTION(vkCreateSampler)
