/* Descriptor buffers (VK_EXT_descriptor_buffer). The bytes of a descriptor name what the program passed when it got them.
 *
 * A range of a descriptor buffer is a set. It is read from mapped memory when a command uses it; if its bytes are others when the command is
 * submitted, the set was updated. */

static size_t descriptor_sizes[INPUT_ATTACHMENT + 1];

static uint64_t descriptor_key(int32_t kind, const void *bytes, size_t size) {
    return hash_bytes(hash_bytes(0xcbf29ce484222325, &kind, sizeof kind), bytes, size) | 1;
}

static void layer_vkGetDescriptorEXT(Handle device, const DescriptorGetInfo *info, size_t size, void *bytes) {
    CALL_NEXT(device, void, vkGetDescriptorEXT, (Handle, const DescriptorGetInfo *, size_t, void *))(device, info, size, bytes);
    if (info->kind < 0 || info->kind > INPUT_ATTACHMENT || !info->data) return;
    LOCK;
    Descriptor descriptor = { .kind = info->kind };
    if (info->kind == SAMPLER) descriptor.image.sampler = *(const uint64_t *)info->data;
    else if (info->kind <= STORAGE_IMAGE || info->kind == INPUT_ATTACHMENT) descriptor.image = *(const ImageDescriptor *)info->data;
    else {
        const DescriptorAddress *named = info->data;
        const Buffer *buffer = find_addressed(named->address);
        if (buffer) descriptor.buffer = (BufferDescriptor){ buffer->handle, named->address - buffer->address, named->range };
        if (info->kind == UNIFORM_TEXELS || info->kind == STORAGE_TEXELS) {
            BufferViewInfo view = { 0, NULL, 0, descriptor.buffer.buffer, named->format, descriptor.buffer.offset, named->range };
            BufferViewInfo *stored = duplicate(&view, sizeof view);
            descriptor.texels = (uintptr_t)stored;
            store_object(BUFFER_VIEWS, descriptor.texels, stored);
        }
    }
    descriptor_sizes[info->kind] = size;
    uint64_t key = descriptor_key(info->kind, bytes, size);
    Descriptor *known = find_object(DESCRIPTOR_BYTES, key);
    if (!known) known = store_object(DESCRIPTOR_BYTES, key, allocate(sizeof *known));
    *known = descriptor;
    UNLOCK;
}

/* Returns the mapped bytes at an address, or NULL. */
static const unsigned char *mapped_bytes(uint64_t address, uint64_t size) {
    const Buffer *buffer = find_addressed(address);
    if (!buffer || address - buffer->address + size > buffer->size) return NULL;
    uint64_t at = buffer->offset + (address - buffer->address);
    for (const Mapping *mapping = mappings; mapping; mapping = mapping->next)
        if (mapping->memory == buffer->memory && mapping->offset <= at && at + size <= mapping->offset + mapping->size)
            return mapping->pointer + (at - mapping->offset);
    return NULL;
}

static uint64_t set_updates(const DescriptorSet *set) {
    if (!set->address) return set->updates;
    const unsigned char *bytes = mapped_bytes(set->address, set->size);
    return bytes ? hash_bytes(0xcbf29ce484222325, bytes, set->size) : 0;
}

static void read_binding(DescriptorSet *set, const LayoutBinding *binding, const unsigned char *bytes) {
    static const unsigned char nothing[256];
    if (binding->type == INLINE_UNIFORM_BLOCK) write_block(set, binding->binding, 0, binding->count, bytes);
    size_t size = binding->type <= INPUT_ATTACHMENT ? descriptor_sizes[binding->type] : 0;
    for (uint32_t element = 0; size && size <= sizeof nothing && element < binding->count; element++, bytes += size) {
        const Descriptor *known = find_object(DESCRIPTOR_BYTES, descriptor_key(binding->type, bytes, size));
        /* Bytes that the program did not write. */
        if (!known && memcmp(bytes, nothing, size) == 0) continue;
        set->is_unread = set->is_unread || !known;
        if (!known) continue;
        Descriptor *descriptor = find_or_add_descriptor(set, binding->binding, element);
        uint32_t at[2] = { descriptor->binding, descriptor->element };
        *descriptor = *known;
        descriptor->binding = at[0], descriptor->element = at[1];
    }
}

/* Reads the sets of a bind point that are ranges of descriptor buffers. */
static void read_descriptor_buffers(const Commands *commands, const BindPoint *point) {
    for (unsigned number = 0; number < MAX_SETS; number++) {
        DescriptorSet *set = point->pushed_sets[number];
        if (!set || !set->address || !set->layout) continue;
        Handle device = commands->device;
        CALL_NEXT(device, void, vkGetDescriptorSetLayoutSizeEXT, (Handle, uint64_t, uint64_t *))(device, set->layout->handle, &set->size);
        const unsigned char *bytes = mapped_bytes(set->address, set->size);
        for (uint32_t i = 0; i < set->count; i++) free(set->descriptors[i].block.data);
        free(set->descriptors);
        *set = (DescriptorSet){ .layout = set->layout, .address = set->address, .size = set->size, .is_unread = !bytes };
        for (uint32_t i = 0; bytes && i < set->layout->count; i++) {
            const LayoutBinding *binding = &set->layout->bindings[i];
            uint64_t offset = 0;
            CALL_NEXT(device, void, vkGetDescriptorSetLayoutBindingOffsetEXT, (Handle, uint64_t, uint32_t, uint64_t *))(
                device, set->layout->handle, binding->binding, &offset);
            read_binding(set, binding, bytes + offset);
        }
        set->updates = set_updates(set);
    }
}

static void layer_vkCmdBindDescriptorBuffersEXT(Handle handle, uint32_t count, const DescriptorBufferBinding *bindings) {
    CALL_NEXT(handle, void, vkCmdBindDescriptorBuffersEXT, (Handle, uint32_t, const DescriptorBufferBinding *))(handle, count, bindings);
    WITH_COMMANDS(for (uint32_t i = 0; i < count && i < MAX_DESCRIPTOR_BUFFERS; i++) commands->descriptor_buffers[i] = bindings[i].address;);
}

static void set_descriptor_buffers(Handle handle, int32_t point, const DescriptorBufferOffsets *set) {
    LOCK;
    Commands *commands = find_commands(handle);
    const PipelineLayout *layout = find_object(PIPELINE_LAYOUTS, set->layout);
    for (uint32_t i = 0; commands && layout && point < POINT_COUNT && i < set->count; i++) {
        uint32_t number = set->first + i;
        if (number >= MAX_SETS || number >= layout->set_count || set->indices[i] >= MAX_DESCRIPTOR_BUFFERS) continue;
        uint64_t address = commands->descriptor_buffers[set->indices[i]] + set->offsets[i];
        DescriptorSet *range = find_object(DESCRIPTOR_RANGES, address);
        if (!range || range->layout != layout->sets[number]) {
            range = store_object(DESCRIPTOR_RANGES, address, allocate(sizeof *range));
            *range = (DescriptorSet){ .layout = layout->sets[number], .address = address };
        }
        forget_pushed_set(&commands->points[point], number);
        commands->points[point].pushed_sets[number] = range;
    }
    UNLOCK;
}

static void layer_vkCmdSetDescriptorBufferOffsetsEXT(Handle handle, int32_t point, uint64_t layout, uint32_t first, uint32_t count,
                                                     const uint32_t *indices, const uint64_t *offsets) {
    CALL_NEXT(handle, void, vkCmdSetDescriptorBufferOffsetsEXT, (Handle, int32_t, uint64_t, uint32_t, uint32_t, const uint32_t *, const uint64_t *))(
        handle, point, layout, first, count, indices, offsets);
    set_descriptor_buffers(handle, point, &(DescriptorBufferOffsets){ 0, NULL, 0, layout, first, count, indices, offsets });
}

static void layer_vkCmdSetDescriptorBufferOffsets2EXT(Handle handle, const DescriptorBufferOffsets *set) {
    CALL_NEXT(handle, void, vkCmdSetDescriptorBufferOffsets2EXT, (Handle, const DescriptorBufferOffsets *))(handle, set);
    if (set->stages & COMPUTE_STAGE) set_descriptor_buffers(handle, COMPUTE_POINT, set);
    if (set->stages & GRAPHICS_STAGES) set_descriptor_buffers(handle, GRAPHICS_POINT, set);
}

static void layer_vkCmdBindDescriptorBufferEmbeddedSamplersEXT(Handle handle, int32_t point, uint64_t layout, uint32_t number) {
    CALL_NEXT(handle, void, vkCmdBindDescriptorBufferEmbeddedSamplersEXT, (Handle, int32_t, uint64_t, uint32_t))(handle, point, layout, number);
    LOCK;
    pushed_set(handle, point, layout, number);
    UNLOCK;
}

#define DESCRIPTOR_BUFFER_FUNCTIONS \
    LAYER_FUNCTION(vkGetDescriptorEXT) LAYER_FUNCTION(vkCmdBindDescriptorBuffersEXT) LAYER_FUNCTION(vkCmdSetDescriptorBufferOffsetsEXT) \
    LAYER_FUNCTION(vkCmdSetDescriptorBufferOffsets2EXT) LAYER_FUNCTION(vkCmdBindDescriptorBufferEmbeddedSamplersEXT)
