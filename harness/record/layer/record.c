/* The recording layer of `vk-litmus record`: writes the commands of a program, and the inputs of its dispatches as cases.
 *
 *     VK_LITMUS_RECORD=DIR         an existing folder; each process writes DIR/PID/journal.jsonl and DIR/PID/kinds/
 *     VK_LITMUS_RECORD_KEEP=N      cases per kind of dispatch (default 1); 0 records no contents
 *     VK_LITMUS_RECORD_BYTES=N     limit for the copies of contents (default 1 GiB)
 *
 * Dispatches of one kind have equal modules, entry points, constants, grids and layouts of descriptors. The contents for a case are copied
 * right before the dispatch, in its command buffer, after a barrier. They are written once a fence of the program or of the layer shows that
 * the submission has ended: at the next call that could use the command buffer again, submits or has waited. The layer itself waits for
 * nothing, so contents of the last submissions are lost if the program ends without any such call.
 *
 * Not recorded, and named in the journal: dispatches from descriptor buffers or shader objects, indirect command generation, ray tracing.
 * Draws, render passes and presents are counted; their accesses are not recorded. */

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain.h"

#include "abi.h"

#include "objects.h"

#include "formats.h"

#include "contents.h"

enum { MAX_SETS = 32, MAX_PUSH_BYTES = 256, MAX_KINDS = 1 << 20 };

typedef struct Commands {
    Handle handle, device;
    const Pipeline *pipeline;
    uint64_t sets[MAX_SETS];
    DescriptorSet *pushed_sets[MAX_SETS];
    uint32_t *offsets[MAX_SETS];
    unsigned char push[MAX_PUSH_BYTES];
    bool is_pushed[MAX_PUSH_BYTES];
    Text list;      /* The commands, as JSON objects separated by commas. */
    uint64_t id;    /* Of the recorded commands; 0 until they are submitted. */
    uint64_t fence;         /* Signalled when the last submission has ended; 0 if there is nothing to write. */
    uint64_t program_fence; /* The id of the program's fence with the same meaning, or 0. */
    Capture *captures;
    struct Commands **executed; /* Secondary command buffers. */
    uint32_t executed_count;
    struct Commands *next_in_pool, *next_pending;
} Commands;

typedef struct Pool {
    Commands *first;
} Pool;

static Commands *pending; /* Command buffers with a fence. */
static Buffer *addressed; /* Buffers with an address. */

#define LOCK pthread_mutex_lock(&lock)
#define UNLOCK pthread_mutex_unlock(&lock)

/* Modules and pipelines. */

static Bytes *copy_code(const ModuleInfo *info) {
    Bytes *code = allocate(sizeof *code);
    *code = (Bytes){ info->size, duplicate(info->code, info->size), hash_bytes(0xcbf29ce484222325, info->code, info->size) };
    return code;
}

static Result layer_vkCreateShaderModule(Handle device, const ModuleInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateShaderModule, (Handle, const ModuleInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    LOCK;
    if (result == SUCCESS) store_object(MODULES, *created, copy_code(info));
    UNLOCK;
    return result;
}

static uint32_t query_subgroup_size(Handle device) {
    struct { int32_t type; void *next; uint32_t size, stages, operations, quads; } subgroup = { SUBGROUP_PROPERTIES, NULL, 0, 0, 0, 0 };
    struct { int32_t type; void *next; char rest[4096]; } all = { PROPERTIES2, &subgroup, { 0 } };
    const DeviceState *state = device_state(device);
    if (state->instance->get_properties2) state->instance->get_properties2(state->physical, &all);
    return subgroup.size;
}

static Pipeline *record_pipeline(Handle device, const PipelineInfo *info) {
    Pipeline *pipeline = allocate(sizeof *pipeline);
    pipeline->subgroup_size = query_subgroup_size(device);
    const Bytes *code = find_object(MODULES, info->stage.module);
    for (const Header *at = info->stage.next; at; at = at->next) {
        if (at->type == MODULE_INFO && !code) code = copy_code((const ModuleInfo *)at);
        if (at->type == SUBGROUP_SIZE_INFO) pipeline->subgroup_size = ((const SubgroupSize *)at)->size;
    }
    if (code) pipeline->code = *code;
    pipeline->entry = duplicate(info->stage.entry, strlen(info->stage.entry) + 1);
    Text constants = { 0 };
    const SpecializationInfo *given = info->stage.specialization;
    for (uint32_t i = 0; given && i < given->count; i++) {
        const SpecializationEntry *entry = &given->entries[i];
        if (entry->size > sizeof(int64_t)) continue;
        int64_t value = 0;
        memcpy(&value, (const char *)given->data + entry->offset, entry->size);
        append(&constants, "%s \"%u\" = %" PRId64, constants.length ? "," : "", entry->id, value);
    }
    append(&constants, "%s", "");
    pipeline->constants = constants.data;
    uint64_t hash = hash_bytes(pipeline->code.hash, pipeline->entry, strlen(pipeline->entry) + 1);
    hash = hash_bytes(hash, pipeline->constants, constants.length);
    pipeline->hash = hash_bytes(hash, &pipeline->subgroup_size, sizeof pipeline->subgroup_size);
    return pipeline;
}

static Result layer_vkCreateComputePipelines(
    Handle device, uint64_t cache, uint32_t count, const PipelineInfo *infos, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateComputePipelines,
                          (Handle, uint64_t, uint32_t, const PipelineInfo *, const void *, uint64_t *))(
        device, cache, count, infos, allocator, created);
    LOCK;
    for (uint32_t i = 0; i < count; i++)
        if (result == SUCCESS && created[i]) store_object(PIPELINES, created[i], record_pipeline(device, &infos[i]));
    UNLOCK;
    return result;
}

/* Descriptors. */

static Result layer_vkCreateDescriptorSetLayout(Handle device, const LayoutInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateDescriptorSetLayout, (Handle, const LayoutInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    if (result != SUCCESS) return result;
    SetLayout *layout = allocate(sizeof *layout);
    *layout = (SetLayout){ info->count, duplicate(info->bindings, info->count * sizeof *info->bindings) };
    for (uint32_t i = 0; i < info->count; i++) {
        LayoutBinding *binding = &layout->bindings[i];
        bool has_samplers = binding->samplers && binding->type <= IMAGE_AND_SAMPLER;
        binding->samplers = has_samplers ? duplicate(binding->samplers, binding->count * sizeof(uint64_t)) : NULL;
    }
    LOCK;
    store_object(LAYOUTS, *created, layout);
    UNLOCK;
    return result;
}

/* Elements beyond the end of a binding are those of the next one (VkWriteDescriptorSet, "consecutive binding updates"). */
static void move_to_binding(const SetLayout *layout, uint32_t *binding, uint32_t *element) {
    for (uint32_t i = 0; layout && i < layout->count; i++) {
        const LayoutBinding *at = &layout->bindings[i];
        if (at->binding != *binding || *element < at->count) continue;
        *element -= at->count;
        ++*binding;
        i = ~0u; /* Bindings of a layout have any order. */
    }
}

static Descriptor *find_or_add_descriptor(DescriptorSet *set, uint32_t binding, uint32_t element) {
    move_to_binding(set->layout, &binding, &element);
    for (uint32_t i = 0; i < set->count; i++)
        if (set->descriptors[i].binding == binding && set->descriptors[i].element == element) return &set->descriptors[i];
    set->descriptors = realloc(set->descriptors, (set->count + 1) * sizeof *set->descriptors);
    if (!set->descriptors) abort();
    set->descriptors[set->count] = (Descriptor){ .binding = binding, .element = element, .kind = -1 };
    return &set->descriptors[set->count++];
}

static void add_immutable_samplers(DescriptorSet *set) {
    for (uint32_t j = 0; set->layout && j < set->layout->count; j++) {
        const LayoutBinding *binding = &set->layout->bindings[j];
        for (uint32_t element = 0; binding->samplers && element < binding->count; element++) {
            Descriptor *descriptor = find_or_add_descriptor(set, binding->binding, element);
            descriptor->kind = binding->type;
            descriptor->image.sampler = binding->samplers[element];
        }
    }
}

static Result layer_vkAllocateDescriptorSets(Handle device, const SetAllocateInfo *info, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkAllocateDescriptorSets, (Handle, const SetAllocateInfo *, uint64_t *))(device, info, created);
    LOCK;
    for (uint32_t i = 0; result == SUCCESS && i < info->count; i++) {
        /* The set of a reused handle was freed by the program. */
        DescriptorSet *set = find_object(DESCRIPTOR_SETS, created[i]);
        if (set) free(set->descriptors);
        else set = store_object(DESCRIPTOR_SETS, created[i], allocate(sizeof *set));
        *set = (DescriptorSet){ find_object(LAYOUTS, info->layouts[i]), 0, NULL };
        add_immutable_samplers(set);
    }
    UNLOCK;
    return result;
}

static void write_descriptor(DescriptorSet *set, uint32_t binding, uint32_t element, int32_t kind, const void *data) {
    Descriptor *descriptor = find_or_add_descriptor(set, binding, element);
    uint64_t immutable_sampler = descriptor->image.sampler;
    descriptor->kind = kind;
    if (kind <= STORAGE_IMAGE) descriptor->image = *(const ImageDescriptor *)data;
    if (kind <= STORAGE_IMAGE && !descriptor->image.sampler) descriptor->image.sampler = immutable_sampler;
    if (kind >= UNIFORM_BUFFER && kind <= STORAGE_BUFFER_DYNAMIC) descriptor->buffer = *(const BufferDescriptor *)data;
}

static void write_descriptors(DescriptorSet *set, const DescriptorWrite *write) {
    for (uint32_t j = 0; set && j < write->count; j++) {
        const void *data = write->kind <= STORAGE_IMAGE ? (const void *)&write->images[j]
            : write->kind >= UNIFORM_BUFFER && write->kind <= STORAGE_BUFFER_DYNAMIC ? (const void *)&write->buffers[j] : NULL;
        write_descriptor(set, write->binding, write->element + j, write->kind, data);
    }
}

static void layer_vkUpdateDescriptorSets(Handle device, uint32_t count, const DescriptorWrite *writes, uint32_t copy_count, const DescriptorCopy *copies) {
    CALL_NEXT(device, void, vkUpdateDescriptorSets, (Handle, uint32_t, const DescriptorWrite *, uint32_t, const DescriptorCopy *))(
        device, count, writes, copy_count, copies);
    LOCK;
    for (uint32_t i = 0; i < count; i++) write_descriptors(find_object(DESCRIPTOR_SETS, writes[i].set), &writes[i]);
    for (uint32_t i = 0; i < copy_count; i++) {
        DescriptorSet *from = find_object(DESCRIPTOR_SETS, copies[i].from), *to = find_object(DESCRIPTOR_SETS, copies[i].to);
        for (uint32_t j = 0; from && to && j < copies[i].count; j++) {
            Descriptor source = *find_or_add_descriptor(from, copies[i].from_binding, copies[i].from_element + j);
            Descriptor *target = find_or_add_descriptor(to, copies[i].to_binding, copies[i].to_element + j);
            source.binding = target->binding;
            source.element = target->element;
            *target = source;
        }
    }
    UNLOCK;
}

#define TEMPLATE_CREATION(name) \
    static Result layer_##name(Handle device, const TemplateInfo *info, const void *allocator, uint64_t *created) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, const TemplateInfo *, const void *, uint64_t *))(device, info, allocator, created); \
        LOCK; \
        if (result == SUCCESS) { \
            Template *stored = store_object(TEMPLATES, *created, allocate(sizeof *stored)); \
            *stored = (Template){ info->count, duplicate(info->entries, info->count * sizeof *info->entries) }; \
        } \
        UNLOCK; \
        return result; \
    }
TEMPLATE_CREATION(vkCreateDescriptorUpdateTemplate)
TEMPLATE_CREATION(vkCreateDescriptorUpdateTemplateKHR)

static void write_template(DescriptorSet *set, uint64_t handle, const void *data) {
    const Template *stored = find_object(TEMPLATES, handle);
    for (uint32_t i = 0; set && stored && i < stored->count; i++)
        for (uint32_t j = 0; j < stored->entries[i].count; j++)
            write_descriptor(set, stored->entries[i].binding, stored->entries[i].element + j, stored->entries[i].kind,
                             (const char *)data + stored->entries[i].offset + j * stored->entries[i].stride);
}

#define TEMPLATE_UPDATE(name) \
    static void layer_##name(Handle device, uint64_t set, uint64_t from, const void *data) { \
        CALL_NEXT(device, void, name, (Handle, uint64_t, uint64_t, const void *))(device, set, from, data); \
        LOCK; \
        write_template(find_object(DESCRIPTOR_SETS, set), from, data); \
        UNLOCK; \
    }
TEMPLATE_UPDATE(vkUpdateDescriptorSetWithTemplate)
TEMPLATE_UPDATE(vkUpdateDescriptorSetWithTemplateKHR)

/* Memory, buffers, images, samplers. */

static Result layer_vkAllocateMemory(Handle device, const MemoryAllocateInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkAllocateMemory, (Handle, const MemoryAllocateInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    LOCK;
    if (result == SUCCESS) {
        forget_object(MEMORIES, *created);
        WRITE_EVENT("{\"event\":\"memory\",\"memory\":%" PRIu64 ",\"size\":%" PRIu64 "}", object_id(MEMORIES, *created), info->size);
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
    *buffer = (Buffer){ ++last_id, *created, info->size, 0, NULL };
    store_object(BUFFERS, *created, buffer);
    WRITE_EVENT("{\"event\":\"buffer\",\"buffer\":%" PRIu64 ",\"size\":%" PRIu64 "}", buffer->id, info->size);
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
    free(find_object(BUFFERS, destroyed));
    forget_object(BUFFERS, destroyed);
    UNLOCK;
    CALL_NEXT(device, void, vkDestroyBuffer, (Handle, uint64_t, const void *))(device, destroyed, allocator);
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

static Result layer_vkCreateImage(Handle device, const ImageInfo *info, const void *allocator, uint64_t *created) {
    enum { TRANSIENT = 0x40 };
    ImageInfo driver_info = *info;
    if (!(driver_info.usage & TRANSIENT)) driver_info.usage |= 1;
    Result result = CALL_NEXT(device, Result, vkCreateImage, (Handle, const ImageInfo *, const void *, uint64_t *))(
        device, &driver_info, allocator, created);
    LOCK;
    if (result == SUCCESS) {
        Image *image = store_object(IMAGES, *created, allocate(sizeof *image));
        *image = (Image){ ++last_id, driver_info };
        WRITE_EVENT("{\"event\":\"image\",\"image\":%" PRIu64 ",\"format\":%d,\"size\":[%u,%u,%u],\"levels\":%u,\"layers\":%u}", image->id,
                    info->format, info->size[0], info->size[1], info->size[2], info->levels, info->layers);
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

static void record_binding(const char *what, uint64_t id, uint64_t memory, uint64_t offset) {
    WRITE_EVENT("{\"event\":\"bind\",\"%s\":%" PRIu64 ",\"memory\":%" PRIu64 ",\"offset\":%" PRIu64 "}", what, id, object_id(MEMORIES, memory), offset);
}

#define RECORD_BINDINGS(name, single, what, id_of) \
    static Result layer_##single(Handle device, uint64_t object, uint64_t memory, uint64_t offset) { \
        Result result = CALL_NEXT(device, Result, single, (Handle, uint64_t, uint64_t, uint64_t))(device, object, memory, offset); \
        LOCK; \
        if (result == SUCCESS) record_binding(what, id_of(object), memory, offset); \
        UNLOCK; \
        return result; \
    } \
    RECORD_BINDINGS2(name, what, id_of) \
    RECORD_BINDINGS2(name##KHR, what, id_of)
#define RECORD_BINDINGS2(name, what, id_of) \
    static Result layer_##name(Handle device, uint32_t count, const BindInfo *all) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, uint32_t, const BindInfo *))(device, count, all); \
        LOCK; \
        for (uint32_t i = 0; result == SUCCESS && i < count; i++) record_binding(what, id_of(all[i].object), all[i].memory, all[i].offset); \
        UNLOCK; \
        return result; \
    }
RECORD_BINDINGS(vkBindBufferMemory2, vkBindBufferMemory, "buffer", buffer_id)
RECORD_BINDINGS(vkBindImageMemory2, vkBindImageMemory, "image", image_id)

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

/* Inputs of a dispatch. */

typedef struct Inputs {
    Commands *commands;
    Capture *capture; /* NULL if contents are not recorded. */
    Text resources, missing;
} Inputs;

static void add_missing(Inputs *inputs, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_missing(Inputs *inputs, const char *format, ...) {
    char words[256];
    va_list all;
    va_start(all, format);
    vsnprintf(words, sizeof words, format, all);
    va_end(all);
    append(&inputs->missing, "%s\"%s\"", inputs->missing.length ? "," : "", words);
    if (inputs->capture) append(&inputs->capture->notes, "# missing: %s\n", words);
}

static void copy_buffer(Handle commands, const Readback *to, uint64_t from, uint64_t offset) {
    BufferRegion region = { offset, 0, to->size };
    if (to->size == 0) return;
    CALL_NEXT(commands, void, vkCmdCopyBuffer, (Handle, uint64_t, uint64_t, uint32_t, const void *))(commands, from, to->buffer, 1, &region);
}

static Readback *add_readback(Inputs *inputs, uint64_t size) {
    Readback *readback = inputs->capture ? create_readback(inputs->commands->device, size) : NULL;
    if (!readback) return NULL;
    readback->next = inputs->capture->readbacks;
    return inputs->capture->readbacks = readback;
}

/* A table of case.toml without contents. */
static Readback *add_table(Inputs *inputs) {
    Readback *table = allocate(sizeof *table);
    table->next = inputs->capture->readbacks;
    return inputs->capture->readbacks = table;
}

static void add_buffer(Inputs *inputs, uint32_t set, const Descriptor *descriptor, uint32_t dynamic) {
    const Buffer *buffer = find_object(BUFFERS, descriptor->buffer.buffer);
    uint64_t offset = descriptor->buffer.offset + dynamic;
    if (!buffer || offset > buffer->size) return;
    uint64_t size = descriptor->buffer.range == WHOLE_SIZE ? buffer->size - offset : descriptor->buffer.range;
    append(&inputs->resources, "%s{\"set\":%u,\"binding\":%u,\"element\":%u,\"buffer\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"size\":%" PRIu64 "}",
           inputs->resources.length ? "," : "", set, descriptor->binding, descriptor->element, buffer->id, offset, size);
    if (descriptor->kind == UNIFORM_BUFFER || descriptor->kind == UNIFORM_BUFFER_DYNAMIC) {
        inputs->resources.length--;
        append(&inputs->resources, ",\"is_uniform\":true}");
    }
    if (!inputs->capture || descriptor->element > 0) return;
    Readback *readback = add_readback(inputs, size);
    if (!readback) {
        add_missing(inputs, "buffer %u.%u: %" PRIu64 " bytes", set, descriptor->binding, size);
        return;
    }
    snprintf(readback->table, sizeof readback->table, "[buffer.\"%u.%u\"]", set, descriptor->binding);
    copy_buffer(inputs->commands->handle, readback, descriptor->buffer.buffer, offset);
}

static void add_image(Inputs *inputs, uint32_t set, const Descriptor *descriptor) {
    enum { GENERAL = 1, TRANSFER_SOURCE_LAYOUT = 6, COLOUR = 1, CUBE = 3 };
    const ViewInfo *view = find_object(VIEWS, descriptor->image.view);
    const Image *found = view ? find_object(IMAGES, view->image) : NULL;
    if (!found) {
        add_missing(inputs, "image %u.%u", set, descriptor->binding);
        return;
    }
    const ImageInfo *image = &found->info;
    SubresourceRange range = view->range;
    if (range.levels == ~0u) range.levels = image->levels - range.level;
    if (range.layers == ~0u) range.layers = image->layers - range.layer;
    append(&inputs->resources, "%s{\"set\":%u,\"binding\":%u,\"element\":%u,\"image\":%" PRIu64 ",\"range\":[%u,%u,%u,%u]}",
           inputs->resources.length ? "," : "", set, descriptor->binding, descriptor->element, found->id, range.level, range.levels,
           range.layer, range.layers);
    if (!inputs->capture || descriptor->element > 0) return;
    uint32_t size[3];
    for (int i = 0; i < 3; i++) size[i] = image->size[i] >> range.level ? image->size[i] >> range.level : 1;
    bool is_layered = view->view_type >= CUBE;
    Text lines = { 0 };
    append(&lines, "size = [%u, %u, %u]\nmips = %u\n", size[0], is_layered && image->image_type == 0 ? range.layers : size[1],
           is_layered && image->image_type != 0 ? range.layers : size[2], range.levels);
    bool has_identity_swizzle = true;
    for (int i = 0; i < 4; i++) has_identity_swizzle = has_identity_swizzle && (view->components[i] == 0 || view->components[i] == 3 + i);
    int format = find_format(view->format);
    uint64_t bytes = format < 0 ? 0 : (uint64_t)size[0] * size[1] * size[2] * range.layers * (unsigned)(FORMATS[format].bits / 8 * FORMATS[format].components);
    bool is_recordable = format >= 0 && has_identity_swizzle && range.levels == 1 && image->samples == 1 && range.aspect == COLOUR
        && bytes <= MAX_IMAGE_BYTES && (image->usage & 1);
    Readback *readback = is_recordable ? add_readback(inputs, bytes) : NULL;
    if (!readback) {
        add_missing(inputs, "contents of image %u.%u: format %d, %u levels", set, descriptor->binding, view->format, range.levels);
        readback = add_table(inputs);
    } else {
        readback->format = view->format;
        bool is_general = descriptor->image.layout == GENERAL;
        int32_t layout = is_general ? GENERAL : TRANSFER_SOURCE_LAYOUT;
        ImageBarrier barrier = { 45, NULL, WRITE_ANY, READ_TRANSFER, descriptor->image.layout, layout, ~0u, ~0u, view->image, range };
        typedef void (*Barrier)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
        Handle commands = inputs->commands->handle;
        Barrier barriers = (Barrier)next_function(commands, "vkCmdPipelineBarrier");
        if (!is_general) barriers(commands, STAGE_ALL, STAGE_TRANSFER, 0, 0, NULL, 0, NULL, 1, &barrier);
        ImageCopy region = { 0, 0, 0, range.aspect, range.level, range.layer, range.layers, { 0 }, { size[0], size[1], size[2] } };
        CALL_NEXT(commands, void, vkCmdCopyImageToBuffer, (Handle, uint64_t, int32_t, uint64_t, uint32_t, const void *))(
            commands, view->image, layout, readback->buffer, 1, &region);
        barrier.from = READ_TRANSFER;
        barrier.to = READ_ANY | WRITE_ANY;
        barrier.from_layout = layout;
        barrier.to_layout = descriptor->image.layout;
        if (!is_general) barriers(commands, STAGE_TRANSFER, STAGE_ALL, 0, 0, NULL, 0, NULL, 1, &barrier);
    }
    readback->lines = lines.data;
    snprintf(readback->table, sizeof readback->table, "[image.\"%u.%u\"]", set, descriptor->binding);
}

static void add_sampler(Inputs *inputs, uint32_t set, const Descriptor *descriptor) {
    static const char *const EDGES[] = { "repeat", "mirror", "clamp" };
    if (!inputs->capture || descriptor->element > 0) return;
    const SamplerInfo *sampler = find_object(SAMPLERS, descriptor->image.sampler);
    bool is_supported = sampler && sampler->mag_filter == sampler->min_filter && sampler->mag_filter < 2 && sampler->address_modes[0] < 3
        && sampler->address_modes[0] == sampler->address_modes[1];
    if (!is_supported) {
        add_missing(inputs, "sampler %u.%u: a filter or address mode that is not computed", set, descriptor->binding);
        return;
    }
    Readback *table = add_table(inputs);
    snprintf(table->table, sizeof table->table, "[sampler.\"%u.%u\"]", set, descriptor->binding);
    Text lines = { 0 };
    append(&lines, "filter = \"%s\"\nedge = \"%s\"\n", sampler->mag_filter ? "linear" : "nearest", EDGES[sampler->address_modes[0]]);
    table->lines = lines.data;
}

/* Buffers with an address in the push constants. */
static void add_address_buffers(Inputs *inputs) {
    const Commands *commands = inputs->commands;
    for (unsigned at = 0; at + 8 <= MAX_PUSH_BYTES && addressed; at += 8) {
        uint64_t word;
        memcpy(&word, commands->push + at, sizeof word);
        if (!commands->is_pushed[at] || !commands->is_pushed[at + 7] || !word) continue;
        for (const Buffer *buffer = addressed; buffer; buffer = buffer->next) {
            if (word < buffer->address || word - buffer->address >= buffer->size) continue;
            uint64_t offset = word - buffer->address, size = buffer->size - offset;
            append(&inputs->resources, "%s{\"push\":%u,\"buffer\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"size\":%" PRIu64 "}",
                   inputs->resources.length ? "," : "", at, buffer->id, offset, size);
            if (!inputs->capture) break;
            Readback *readback = add_readback(inputs, size);
            if (!readback) {
                add_missing(inputs, "buffer behind push@%u", at);
                break;
            }
            Text lines = { 0 };
            append(&lines, "at = \"push@%u\"\n", at);
            snprintf(readback->table, sizeof readback->table, "[address.\"push%u\"]", at);
            readback->lines = lines.data;
            copy_buffer(commands->handle, readback, buffer->handle, offset);
            break;
        }
    }
}

static bool is_dynamic(int32_t kind) { return kind == UNIFORM_BUFFER_DYNAMIC || kind == STORAGE_BUFFER_DYNAMIC; }

/* Dynamic offsets are ordered by binding, then by element. */
static uint32_t dynamic_offset(const DescriptorSet *set, const uint32_t *offsets, const Descriptor *descriptor) {
    uint32_t before = 0;
    if (!is_dynamic(descriptor->kind) || !set->layout || !offsets) return 0;
    for (uint32_t i = 0; i < set->layout->count; i++) {
        const LayoutBinding *binding = &set->layout->bindings[i];
        if (binding->binding < descriptor->binding && is_dynamic(binding->type)) before += binding->count;
    }
    return offsets[before + descriptor->element];
}

static const DescriptorSet *bound_set(const Commands *commands, uint32_t number) {
    const DescriptorSet *pushed = commands->pushed_sets[number];
    return pushed ? pushed : find_object(DESCRIPTOR_SETS, commands->sets[number]);
}

/* Kinds of dispatches. */

typedef struct DispatchKind {
    uint64_t hash, captured, last_number; /* Cases that are written or will be; the number of the last one. */
} DispatchKind;
static DispatchKind *dispatch_kinds;
static uint64_t dispatch_kind_count;

static uint64_t find_kind(const Commands *commands, const uint32_t grid[3]) {
    uint64_t hash = commands->pipeline->hash;
    if (grid) hash = hash_bytes(hash, grid, 3 * sizeof *grid);
    for (uint32_t number = 0; number < MAX_SETS; number++) {
        const DescriptorSet *set = bound_set(commands, number);
        for (uint32_t i = 0; set && i < set->count; i++) {
            uint32_t words[4] = { number, set->descriptors[i].binding, set->descriptors[i].element, (uint32_t)set->descriptors[i].kind };
            hash = hash_bytes(hash, words, sizeof words);
        }
    }
    for (uint64_t i = dispatch_kind_count; i-- > 0;)
        if (dispatch_kinds[i].hash == hash) return i;
    if ((dispatch_kind_count & (dispatch_kind_count - 1)) == 0) {
        dispatch_kinds = realloc(dispatch_kinds, (dispatch_kind_count ? 2 * dispatch_kind_count : 1) * sizeof *dispatch_kinds);
        if (!dispatch_kinds) abort();
    }
    dispatch_kinds[dispatch_kind_count] = (DispatchKind){ hash, 0, 0 };
    uint64_t kind = dispatch_kind_count++;
    if (open_journal()) {
        char path[4096];
        snprintf(path, sizeof path - 16, "%s/kinds/%" PRIu64, folder, kind);
        mkdir(path, 0777);
        strcat(path, "/module.spv");
        FILE *file = fopen(path, "wb");
        if (file) {
            fwrite(commands->pipeline->code.data, 1, commands->pipeline->code.size, file);
            fclose(file);
        }
    }
    Text line = { 0 };
    append(&line, "{\"event\":\"kind\",\"kind\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\",\"module\":\"%016" PRIx64 "\",\"entry\":", kind, hash,
           commands->pipeline->code.hash);
    append_string(&line, commands->pipeline->entry);
    append(&line, ",\"subgroup_size\":%u}", commands->pipeline->subgroup_size);
    write_line(&line);
    return kind;
}

static Commands *find_commands(Handle handle) { return find_object(COMMANDS, (uintptr_t)handle); }

/* Appends a command to the list of its command buffer. */
#define ADD_COMMAND(commands, ...) \
    do { \
        append(&(commands)->list, "%s", (commands)->list.length ? "," : ""); \
        append(&(commands)->list, __VA_ARGS__); \
    } while (0)

/* Called before a dispatch is recorded. */
static void record_dispatch(Handle handle, const uint32_t grid[3], uint64_t indirect, uint64_t indirect_offset, const char *note) {
    LOCK;
    Commands *commands = find_commands(handle);
    if (!commands || !commands->pipeline || !open_journal()) {
        if (commands) ADD_COMMAND(commands, "{\"op\":\"unrecorded\",\"what\":\"a dispatch without a known pipeline\"}");
        UNLOCK;
        return;
    }
    uint64_t kind = find_kind(commands, grid);
    Inputs inputs = { commands, NULL, { 0 }, { 0 } };
    if (dispatch_kinds[kind].captured < kept_per_kind) {
        Capture *capture = inputs.capture = allocate(sizeof *capture);
        capture->pipeline = commands->pipeline;
        capture->kind = kind;
        capture->number = ++dispatch_kinds[kind].last_number;
        dispatch_kinds[kind].captured++;
        if (grid) memcpy(capture->grid, grid, sizeof capture->grid);
        for (unsigned at = 0; at + 4 <= MAX_PUSH_BYTES; at += 4) {
            uint32_t word;
            memcpy(&word, commands->push + at, sizeof word);
            if (commands->is_pushed[at]) append(&capture->push, " { offset = %u, u32 = [%u] },", at, word);
        }
        capture->next = commands->captures;
        commands->captures = capture;
    }
    if (note) add_missing(&inputs, "%s", note);
    typedef void (*Barrier)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
    Barrier barriers = (Barrier)next_function(handle, "vkCmdPipelineBarrier");
    MemoryBarrier before = { 46, NULL, WRITE_ANY, READ_TRANSFER }, after = { 46, NULL, WRITE_TRANSFER, READ_ANY | WRITE_ANY };
    if (inputs.capture) barriers(handle, STAGE_ALL, STAGE_TRANSFER, 0, 1, &before, 0, NULL, 0, NULL);
    if (!grid && inputs.capture) {
        inputs.capture->indirect = create_readback(commands->device, 12);
        if (inputs.capture->indirect) copy_buffer(handle, inputs.capture->indirect, indirect, indirect_offset);
        else add_missing(&inputs, "grid of an indirect dispatch");
    }
    for (uint32_t number = 0; number < MAX_SETS; number++) {
        const DescriptorSet *set = bound_set(commands, number);
        for (uint32_t i = 0; set && i < set->count; i++) {
            const Descriptor *descriptor = &set->descriptors[i];
            if (descriptor->kind < 0) continue;
            if (descriptor->element > 0 && inputs.capture) add_missing(&inputs, "element %u of %u.%u", descriptor->element, number, descriptor->binding);
            if (descriptor->kind == SAMPLER || descriptor->kind == IMAGE_AND_SAMPLER) add_sampler(&inputs, number, descriptor);
            if (descriptor->kind >= IMAGE_AND_SAMPLER && descriptor->kind <= STORAGE_IMAGE) add_image(&inputs, number, descriptor);
            if (descriptor->kind == UNIFORM_TEXELS || descriptor->kind == STORAGE_TEXELS || descriptor->kind > STORAGE_BUFFER_DYNAMIC)
                add_missing(&inputs, "descriptor %u.%u of type %d", number, descriptor->binding, descriptor->kind);
            if (descriptor->kind >= UNIFORM_BUFFER && descriptor->kind <= STORAGE_BUFFER_DYNAMIC)
                add_buffer(&inputs, number, descriptor, dynamic_offset(set, commands->offsets[number], descriptor));
        }
    }
    add_address_buffers(&inputs);
    if (inputs.capture) barriers(handle, STAGE_TRANSFER, STAGE_ALL | 0x4000, 0, 1, &after, 0, NULL, 0, NULL);
    ADD_COMMAND(commands, "{\"op\":\"dispatch\",\"kind\":%" PRIu64, kind);
    if (grid) append(&commands->list, ",\"grid\":[%u,%u,%u]", grid[0], grid[1], grid[2]);
    else append(&commands->list, ",\"indirect\":{\"buffer\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"size\":12}", buffer_id(indirect), indirect_offset);
    if (inputs.capture) append(&commands->list, ",\"case\":%" PRIu64, inputs.capture->number);
    uint64_t push_hash = hash_bytes(hash_bytes(0xcbf29ce484222325, commands->push, MAX_PUSH_BYTES), commands->is_pushed, MAX_PUSH_BYTES);
    append(&commands->list, ",\"push\":%" PRIu64, push_hash);
    append(&commands->list, ",\"resources\":[%s]", inputs.resources.data ? inputs.resources.data : "");
    append(&commands->list, ",\"missing\":[%s]}", inputs.missing.data ? inputs.missing.data : "");
    free(inputs.resources.data);
    free(inputs.missing.data);
    UNLOCK;
}

static void layer_vkCmdDispatch(Handle handle, uint32_t x, uint32_t y, uint32_t z) {
    record_dispatch(handle, (uint32_t[3]){ x, y, z }, 0, 0, NULL);
    CALL_NEXT(handle, void, vkCmdDispatch, (Handle, uint32_t, uint32_t, uint32_t))(handle, x, y, z);
}

static void layer_vkCmdDispatchIndirect(Handle handle, uint64_t buffer, uint64_t offset) {
    record_dispatch(handle, NULL, buffer, offset, NULL);
    CALL_NEXT(handle, void, vkCmdDispatchIndirect, (Handle, uint64_t, uint64_t))(handle, buffer, offset);
}

#define DISPATCH_BASE(name) \
    static void layer_##name(Handle handle, uint32_t a, uint32_t b, uint32_t c, uint32_t x, uint32_t y, uint32_t z) { \
        record_dispatch(handle, (uint32_t[3]){ x, y, z }, 0, 0, a | b | c ? "first workgroup that is not 0,0,0" : NULL); \
        CALL_NEXT(handle, void, name, (Handle, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t))(handle, a, b, c, x, y, z); \
    }
DISPATCH_BASE(vkCmdDispatchBase)
DISPATCH_BASE(vkCmdDispatchBaseKHR)

#include "commands.h"

#include "queues.h"

/* Entry points for the loader. */

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *created) {
    Result result = create_instance(info, allocator, created);
    LOCK;
    /* Shows that the layer is part of the program. */
    WRITE_EVENT("{\"event\":\"instance\",\"layer\":1,\"process\":%ld,\"success\":%s}", (long)getpid(), result == SUCCESS ? "true" : "false");
    UNLOCK;
    return result;
}

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    Result result = create_device(physical, info, allocator, created);
    if (result != SUCCESS) return result;
    struct { int32_t type; void *next; uint32_t api, driver, vendor, device; int32_t kind; char name[256], rest[4096]; } properties = { .type = PROPERTIES2 };
    const DeviceState *state = device_state(*created);
    if (state->instance->get_properties2) state->instance->get_properties2(physical, &properties);
    LOCK;
    Text line = { 0 };
    append(&line, "{\"event\":\"device\",\"device\":%u,\"name\":", state->generation);
    append_string(&line, properties.name);
    append(&line, "}");
    write_line(&line);
    UNLOCK;
    return result;
}

static void layer_vkDestroyDevice(Handle device, const void *allocator) {
    if (!device) return;
    DeviceState *state = device_state(device);
    LOCK;
    write_ended(device, true, 0);
    UNLOCK;
    CALL_NEXT(device, void, vkDestroyDevice, (Handle, const void *))(device, allocator);
    state->key = NULL;
}

static Function find_layer_function(const char *name) {
    COMMON_LAYER_FUNCTIONS
    LAYER_FUNCTION(vkDestroyDevice)
    LAYER_FUNCTION(vkCreateShaderModule)
    LAYER_FUNCTION(vkCreateComputePipelines)
    LAYER_FUNCTION(vkCreateDescriptorSetLayout)
    LAYER_FUNCTION(vkAllocateDescriptorSets)
    LAYER_FUNCTION(vkUpdateDescriptorSets)
    LAYER_FUNCTION(vkCreateDescriptorUpdateTemplate)
    LAYER_FUNCTION(vkCreateDescriptorUpdateTemplateKHR)
    LAYER_FUNCTION(vkUpdateDescriptorSetWithTemplate)
    LAYER_FUNCTION(vkUpdateDescriptorSetWithTemplateKHR)
    LAYER_FUNCTION(vkAllocateMemory)
    LAYER_FUNCTION(vkCreateBuffer)
    LAYER_FUNCTION(vkDestroyBuffer)
    LAYER_FUNCTION(vkGetBufferDeviceAddress)
    LAYER_FUNCTION(vkGetBufferDeviceAddressKHR)
    LAYER_FUNCTION(vkGetBufferDeviceAddressEXT)
    LAYER_FUNCTION(vkCreateImage)
    LAYER_FUNCTION(vkDestroyImage)
    LAYER_FUNCTION(vkBindBufferMemory)
    LAYER_FUNCTION(vkBindBufferMemory2)
    LAYER_FUNCTION(vkBindBufferMemory2KHR)
    LAYER_FUNCTION(vkBindImageMemory)
    LAYER_FUNCTION(vkBindImageMemory2)
    LAYER_FUNCTION(vkBindImageMemory2KHR)
    LAYER_FUNCTION(vkCreateImageView)
    LAYER_FUNCTION(vkCreateSampler)
    LAYER_FUNCTION(vkCmdDispatch)
    LAYER_FUNCTION(vkCmdDispatchIndirect)
    LAYER_FUNCTION(vkCmdDispatchBase)
    LAYER_FUNCTION(vkCmdDispatchBaseKHR)
    COMMAND_FUNCTIONS
    QUEUE_FUNCTIONS
    return NULL;
}
