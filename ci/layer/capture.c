/* A Vulkan layer that writes the dispatches of a program, with their inputs, as cases for `vk-litmus race` and `check`:
 *
 *     VK_LITMUS_CAPTURE=DIR               an existing folder; each dispatch gets a subfolder with kernel.spv, case.toml and contents
 *     VK_LITMUS_CAPTURE_DISPATCHES=FROM-TO  range of dispatches of the process, from 1 (default 1-16)
 *
 * Contents are copied right before the dispatch: in its command buffer, after a barrier. The layer then waits for the submission.
 * A program whose submission waits for a later host action therefore hangs.
 *
 * Captured: modules, entry points, specialization and push constants, grids (direct and indirect), subgroup sizes, buffers (also dynamic
 * ones and those with an address in push constants), images with one level in common formats, samplers. case.toml lists what is missing.
 * Not captured: dispatches in secondary command buffers; descriptors from update templates, descriptor buffers or push descriptors.
 *
 * Build it with `cc -shared -fPIC -o libcapture.so capture.c -lm`. It is not shipped. It needs no Vulkan headers: this file and layer.h
 * declare the structures that it reads. */

#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layer.h"

enum { MAX_READBACK_BYTES = 1 << 28, MAX_SETS = 32, MAX_PUSH_BYTES = 256, TRANSFER_SOURCE = 1, TRANSFER_DESTINATION = 2 };
enum { SAMPLER, IMAGE_AND_SAMPLER, SAMPLED_IMAGE, STORAGE_IMAGE, UNIFORM_TEXELS, STORAGE_TEXELS, UNIFORM_BUFFER, STORAGE_BUFFER,
       UNIFORM_BUFFER_DYNAMIC, STORAGE_BUFFER_DYNAMIC };
enum { MODULE_INFO = 16, SUBGROUP_SIZE_INFO = 1000225001, SUBGROUP_PROPERTIES = 1000094000, PROPERTIES2 = 1000059001 };
static const uint64_t WHOLE_SIZE = ~(uint64_t)0;

typedef struct ModuleInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    size_t size;
    const void *code;
} ModuleInfo;

typedef struct SpecializationEntry {
    uint32_t id, offset;
    size_t size;
} SpecializationEntry;

typedef struct SpecializationInfo {
    uint32_t count;
    const SpecializationEntry *entries;
    size_t size;
    const void *data;
} SpecializationInfo;

typedef struct PipelineInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    struct {
        int32_t type;
        const Header *next;
        uint32_t flags, stage;
        uint64_t module;
        const char *entry;
        const SpecializationInfo *specialization;
    } stage;
    uint64_t layout, base;
    int32_t base_index;
} PipelineInfo;

typedef struct SubgroupSize {
    int32_t type;
    const void *next;
    uint32_t size;
} SubgroupSize;

typedef struct LayoutBinding {
    uint32_t binding;
    int32_t type;
    uint32_t count, stages;
    const uint64_t *samplers;
} LayoutBinding;

typedef struct LayoutInfo {
    int32_t type;
    const void *next;
    uint32_t flags, count;
    const LayoutBinding *bindings;
} LayoutInfo;

typedef struct SetAllocateInfo {
    int32_t type;
    const void *next;
    uint64_t pool;
    uint32_t count;
    const uint64_t *layouts;
} SetAllocateInfo;

typedef struct ImageDescriptor {
    uint64_t sampler, view;
    int32_t layout;
} ImageDescriptor;

typedef struct BufferDescriptor {
    uint64_t buffer, offset, range;
} BufferDescriptor;

typedef struct DescriptorWrite {
    int32_t type;
    const void *next;
    uint64_t set;
    uint32_t binding, element, count;
    int32_t kind;
    const ImageDescriptor *images;
    const BufferDescriptor *buffers;
    const uint64_t *texels;
} DescriptorWrite;

typedef struct DescriptorCopy {
    int32_t type;
    const void *next;
    uint64_t from;
    uint32_t from_binding, from_element;
    uint64_t to;
    uint32_t to_binding, to_element, count;
} DescriptorCopy;

typedef struct BufferInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t size;
    uint32_t usage, sharing, family_count;
    const uint32_t *families;
} BufferInfo;

typedef struct ImageInfo {
    int32_t type;
    const void *next;
    uint32_t flags, image_type;
    int32_t format;
    uint32_t size[3], levels, layers, samples, tiling, usage, sharing, family_count;
    const uint32_t *families;
    int32_t layout;
} ImageInfo;

typedef struct SubresourceRange {
    uint32_t aspect, level, levels, layer, layers;
} SubresourceRange;

typedef struct ViewInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t image;
    int32_t view_type, format, components[4];
    SubresourceRange range;
} ViewInfo;

typedef struct SamplerInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    int32_t mag_filter, min_filter, mip_mode, address_modes[3];
} SamplerInfo;

typedef struct AddressInfo {
    int32_t type;
    const void *next;
    uint64_t buffer;
} AddressInfo;

typedef struct MemoryAllocateInfo {
    int32_t type;
    const void *next;
    uint64_t size;
    uint32_t index;
} MemoryAllocateInfo;

typedef struct MemoryRequirements {
    uint64_t size, alignment;
    uint32_t types;
} MemoryRequirements;

typedef struct MemoryProperties {
    uint32_t count;
    struct { uint32_t flags, heap; } types[32];
    uint32_t heap_count;
    struct { uint64_t size; uint32_t flags; } heaps[16];
} MemoryProperties;

typedef struct MemoryBarrier {
    int32_t type;
    const void *next;
    uint32_t from, to;
} MemoryBarrier;

typedef struct ImageBarrier {
    int32_t type;
    const void *next;
    uint32_t from, to;
    int32_t from_layout, to_layout;
    uint32_t from_family, to_family;
    uint64_t image;
    SubresourceRange range;
} ImageBarrier;

typedef struct ImageCopy {
    uint64_t offset;
    uint32_t row, height, aspect, level, layer, layers;
    int32_t begin[3];
    uint32_t size[3];
} ImageCopy;

typedef struct SubmitInfo {
    int32_t type;
    const void *next;
    uint32_t wait_count;
    const uint64_t *waits;
    const uint32_t *stages;
    uint32_t command_count;
    const Handle *commands;
} SubmitInfo;

typedef struct CommandBufferInfo {
    int32_t type;
    const void *next;
    Handle commands;
} CommandBufferInfo;

typedef struct SubmitInfo2 {
    int32_t type;
    const void *next;
    uint32_t flags, wait_count;
    const void *waits;
    uint32_t command_count;
    const CommandBufferInfo *commands;
} SubmitInfo2;

/* State of Vulkan objects. */

typedef struct Bytes {
    size_t size;
    unsigned char *data;
} Bytes;

typedef struct Pipeline {
    Bytes code;
    char *entry;
    uint32_t constant_count, subgroup_size;
    struct { uint32_t id; int64_t value; } *constants;
} Pipeline;

typedef struct SetLayout {
    uint32_t count;
    LayoutBinding *bindings;
} SetLayout;

typedef struct Descriptor {
    uint32_t binding, element;
    int32_t kind;
    ImageDescriptor image;
    BufferDescriptor buffer;
} Descriptor;

typedef struct DescriptorSet {
    const SetLayout *layout;
    uint32_t count;
    Descriptor *descriptors;
} DescriptorSet;

typedef struct Buffer {
    uint64_t size, address;
} Buffer;

/* Host memory with a copy, and the source of the copy. */
typedef struct Readback {
    char table[96]; /* The header of its table in case.toml. */
    char file[64];
    char *lines;
    uint64_t buffer, memory, size;
    void *pointer;
    int32_t format; /* Format of an image; 0 for a buffer. */
    struct Readback *next;
} Readback;

typedef struct Dispatch {
    const Pipeline *pipeline;
    uint32_t grid[3];
    Readback *indirect, *readbacks;
    char *notes;
    unsigned char push[MAX_PUSH_BYTES];
    bool pushed[MAX_PUSH_BYTES];
    struct Dispatch *next;
} Dispatch;

typedef struct CommandBuffer {
    const Pipeline *pipeline;
    const DescriptorSet *sets[MAX_SETS];
    uint32_t *offsets[MAX_SETS];
    unsigned char push[MAX_PUSH_BYTES];
    bool pushed[MAX_PUSH_BYTES];
    Dispatch *first, **last;
} CommandBuffer;

/* Maps a handle and its kind to the state of the object. */
enum { MODULES, LAYOUTS, DESCRIPTOR_SETS, PIPELINES, BUFFERS, IMAGES, VIEWS, SAMPLERS, COMMANDS, OBJECT_KINDS };
static struct { uint64_t key; void *value; } *objects[OBJECT_KINDS];
static unsigned object_counts[OBJECT_KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Handle physical_devices[MAX_DEVICES];
static void (*get_memory_properties)(Handle, MemoryProperties *);
static void (*get_properties2)(Handle, void *);

static void *allocate(size_t bytes) {
    void *created = calloc(1, bytes ? bytes : 1);
    if (!created) abort();
    return created;
}

static void *duplicate(const void *from, size_t bytes) { return memcpy(allocate(bytes), from, bytes); }

static void *find_object(int kind, uint64_t key) {
    for (unsigned i = object_counts[kind]; i-- > 0;)
        if (objects[kind][i].key == key) return objects[kind][i].value;
    return NULL;
}

/* Not freed: recorded commands still point to the old state. */
static void *store_object(int kind, uint64_t key, void *value) {
    unsigned i = 0;
    while (i < object_counts[kind] && objects[kind][i].key != key) i++;
    if (i == object_counts[kind]) {
        if ((i & (i + 1)) == 0 || i == 0) {
            objects[kind] = realloc(objects[kind], (2 * (size_t)i + 2) * sizeof *objects[kind]);
            if (!objects[kind]) abort();
        }
        object_counts[kind]++;
    }
    objects[kind][i].key = key;
    return objects[kind][i].value = value;
}

/* A growable text. */
static char *append_format(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static char *append_format(char *text, const char *format, ...) {
    va_list all;
    va_start(all, format);
    int added_length = vsnprintf(NULL, 0, format, all);
    va_end(all);
    size_t old_length = text ? strlen(text) : 0;
    text = realloc(text, old_length + (size_t)added_length + 1);
    if (!text) abort();
    va_start(all, format);
    vsnprintf(text + old_length, (size_t)added_length + 1, format, all);
    va_end(all);
    return text;
}

#define CALL_NEXT(handle, result, name, parameters) ((result(*)parameters)next_function(handle, #name))

/* Modules and pipelines. */

static Bytes *copy_code(const ModuleInfo *info) {
    Bytes *code = allocate(sizeof *code);
    *code = (Bytes){ info->size, duplicate(info->code, info->size) };
    return code;
}

static Result layer_vkCreateShaderModule(Handle device, const ModuleInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateShaderModule, (Handle, const ModuleInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    pthread_mutex_lock(&lock);
    if (result == SUCCESS) store_object(MODULES, *created, copy_code(info));
    pthread_mutex_unlock(&lock);
    return result;
}

static uint32_t query_subgroup_size(Handle device) {
    struct { int32_t type; void *next; uint32_t size, stages, operations, quads; } subgroup = { SUBGROUP_PROPERTIES, NULL, 0, 0, 0, 0 };
    struct { int32_t type; void *next; char rest[4096]; } all = { PROPERTIES2, &subgroup, { 0 } };
    if (get_properties2) get_properties2(physical_devices[device_index(device)], &all);
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
    const SpecializationInfo *given = info->stage.specialization;
    if (!given) return pipeline;
    pipeline->constants = allocate(given->count * sizeof *pipeline->constants);
    for (uint32_t i = 0; i < given->count; i++) {
        const SpecializationEntry *entry = &given->entries[i];
        if (entry->size > sizeof(int64_t)) continue;
        int64_t value = 0;
        memcpy(&value, (const char *)given->data + entry->offset, entry->size);
        pipeline->constants[pipeline->constant_count].id = entry->id;
        pipeline->constants[pipeline->constant_count++].value = value;
    }
    return pipeline;
}

static Result layer_vkCreateComputePipelines(
    Handle device, uint64_t cache, uint32_t count, const PipelineInfo *infos, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateComputePipelines,
                          (Handle, uint64_t, uint32_t, const PipelineInfo *, const void *, uint64_t *))(
        device, cache, count, infos, allocator, created);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++)
        if (result == SUCCESS && created[i]) store_object(PIPELINES, created[i], record_pipeline(device, &infos[i]));
    pthread_mutex_unlock(&lock);
    return result;
}

/* Descriptors. */

static Result layer_vkCreateDescriptorSetLayout(Handle device, const LayoutInfo *info, const void *allocator, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkCreateDescriptorSetLayout, (Handle, const LayoutInfo *, const void *, uint64_t *))(
        device, info, allocator, created);
    if (result != SUCCESS) return result;
    SetLayout *layout = allocate(sizeof *layout);
    *layout = (SetLayout){ info->count, duplicate(info->bindings, info->count * sizeof *info->bindings) };
    for (uint32_t i = 0; i < info->count; i++)
        if (layout->bindings[i].samplers)
            layout->bindings[i].samplers = duplicate(layout->bindings[i].samplers, layout->bindings[i].count * sizeof(uint64_t));
    pthread_mutex_lock(&lock);
    store_object(LAYOUTS, *created, layout);
    pthread_mutex_unlock(&lock);
    return result;
}

static Descriptor *find_or_add_descriptor(DescriptorSet *set, uint32_t binding, uint32_t element) {
    for (uint32_t i = 0; i < set->count; i++)
        if (set->descriptors[i].binding == binding && set->descriptors[i].element == element) return &set->descriptors[i];
    set->descriptors = realloc(set->descriptors, (set->count + 1) * sizeof *set->descriptors);
    if (!set->descriptors) abort();
    set->descriptors[set->count] = (Descriptor){ .binding = binding, .element = element, .kind = -1 };
    return &set->descriptors[set->count++];
}

static Result layer_vkAllocateDescriptorSets(Handle device, const SetAllocateInfo *info, uint64_t *created) {
    Result result = CALL_NEXT(device, Result, vkAllocateDescriptorSets, (Handle, const SetAllocateInfo *, uint64_t *))(device, info, created);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; result == SUCCESS && i < info->count; i++) {
        DescriptorSet *set = allocate(sizeof *set);
        set->layout = find_object(LAYOUTS, info->layouts[i]);
        for (uint32_t j = 0; set->layout && j < set->layout->count; j++) {
            const LayoutBinding *binding = &set->layout->bindings[j];
            if (!binding->samplers) continue;
            Descriptor *descriptor = find_or_add_descriptor(set, binding->binding, 0);
            descriptor->kind = binding->type;
            descriptor->image.sampler = binding->samplers[0];
        }
        store_object(DESCRIPTOR_SETS, created[i], set);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void layer_vkUpdateDescriptorSets(Handle device, uint32_t count, const DescriptorWrite *writes, uint32_t copy_count, const DescriptorCopy *copies) {
    CALL_NEXT(device, void, vkUpdateDescriptorSets, (Handle, uint32_t, const DescriptorWrite *, uint32_t, const DescriptorCopy *))(
        device, count, writes, copy_count, copies);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        DescriptorSet *set = find_object(DESCRIPTOR_SETS, writes[i].set);
        for (uint32_t j = 0; set && j < writes[i].count; j++) {
            Descriptor *descriptor = find_or_add_descriptor(set, writes[i].binding, writes[i].element + j);
            uint64_t immutable_sampler = descriptor->image.sampler;
            descriptor->kind = writes[i].kind;
            if (descriptor->kind <= STORAGE_IMAGE) descriptor->image = writes[i].images[j];
            if (!descriptor->image.sampler) descriptor->image.sampler = immutable_sampler;
            if (descriptor->kind >= UNIFORM_BUFFER && descriptor->kind <= STORAGE_BUFFER_DYNAMIC)
                descriptor->buffer = writes[i].buffers[j];
        }
    }
    for (uint32_t i = 0; i < copy_count; i++) {
        DescriptorSet *from = find_object(DESCRIPTOR_SETS, copies[i].from), *to = find_object(DESCRIPTOR_SETS, copies[i].to);
        for (uint32_t j = 0; from && to && j < copies[i].count; j++) {
            Descriptor source = *find_or_add_descriptor(from, copies[i].from_binding, copies[i].from_element + j);
            source.binding = copies[i].to_binding;
            source.element = copies[i].to_element + j;
            *find_or_add_descriptor(to, source.binding, source.element) = source;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Buffers, images, samplers. */

static Result layer_vkCreateBuffer(Handle device, const BufferInfo *info, const void *allocator, uint64_t *created) {
    BufferInfo driver_info = *info;
    driver_info.usage |= TRANSFER_SOURCE;
    Result result = CALL_NEXT(device, Result, vkCreateBuffer, (Handle, const BufferInfo *, const void *, uint64_t *))(
        device, &driver_info, allocator, created);
    if (result != SUCCESS) return result;
    Buffer *buffer = allocate(sizeof *buffer);
    buffer->size = info->size;
    pthread_mutex_lock(&lock);
    store_object(BUFFERS, *created, buffer);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Forget the address range, so that later words are not taken for addresses in it. */
static void layer_vkDestroyBuffer(Handle device, uint64_t destroyed, const void *allocator) {
    pthread_mutex_lock(&lock);
    Buffer *buffer = find_object(BUFFERS, destroyed);
    if (buffer) buffer->address = 0;
    pthread_mutex_unlock(&lock);
    CALL_NEXT(device, void, vkDestroyBuffer, (Handle, uint64_t, const void *))(device, destroyed, allocator);
}

#define RECORD_ADDRESS(name) \
    static uint64_t layer_##name(Handle device, const AddressInfo *info) { \
        uint64_t address = CALL_NEXT(device, uint64_t, name, (Handle, const AddressInfo *))(device, info); \
        pthread_mutex_lock(&lock); \
        Buffer *buffer = find_object(BUFFERS, info->buffer); \
        if (buffer) buffer->address = address; \
        pthread_mutex_unlock(&lock); \
        return address; \
    }
RECORD_ADDRESS(vkGetBufferDeviceAddress)
RECORD_ADDRESS(vkGetBufferDeviceAddressKHR)
RECORD_ADDRESS(vkGetBufferDeviceAddressEXT)

static Result layer_vkCreateImage(Handle device, const ImageInfo *info, const void *allocator, uint64_t *created) {
    enum { TRANSIENT = 0x40 };
    ImageInfo driver_info = *info;
    if (!(driver_info.usage & TRANSIENT)) driver_info.usage |= TRANSFER_SOURCE;
    Result result = CALL_NEXT(device, Result, vkCreateImage, (Handle, const ImageInfo *, const void *, uint64_t *))(
        device, &driver_info, allocator, created);
    pthread_mutex_lock(&lock);
    if (result == SUCCESS) store_object(IMAGES, *created, duplicate(&driver_info, sizeof driver_info));
    pthread_mutex_unlock(&lock);
    return result;
}

#define RECORD_CREATION(name, kind, type) \
    static Result layer_##name(Handle device, const type *info, const void *allocator, uint64_t *created) { \
        Result result = CALL_NEXT(device, Result, name, (Handle, const type *, const void *, uint64_t *))(device, info, allocator, created); \
        pthread_mutex_lock(&lock); \
        if (result == SUCCESS) store_object(kind, *created, duplicate(info, sizeof *info)); \
        pthread_mutex_unlock(&lock); \
        return result; \
    }
RECORD_CREATION(vkCreateImageView, VIEWS, ViewInfo)
RECORD_CREATION(vkCreateSampler, SAMPLERS, SamplerInfo)

/* Memory of the layer, the destination of copies. */

/* Allocated per command buffer. Returns NULL if memory is exhausted. */
static Readback *create_readback(Handle commands, uint64_t size) {
    Handle device = devices[device_index(commands)].device;
    enum { VISIBLE_AND_COHERENT = 6 };
    Readback *readback = allocate(sizeof *readback);
    readback->size = size;
    BufferInfo info = { 12, NULL, 0, size ? (size + 3) / 4 * 4 : 4, TRANSFER_DESTINATION, 0, 0, NULL };
    if (CALL_NEXT(device, Result, vkCreateBuffer, (Handle, const BufferInfo *, const void *, uint64_t *))(device, &info, NULL, &readback->buffer))
        return NULL;
    MemoryRequirements needed;
    CALL_NEXT(device, void, vkGetBufferMemoryRequirements, (Handle, uint64_t, MemoryRequirements *))(device, readback->buffer, &needed);
    MemoryProperties types;
    get_memory_properties(physical_devices[device_index(commands)], &types);
    for (uint32_t i = 0; i < types.count; i++) {
        if (!(needed.types >> i & 1) || (types.types[i].flags & VISIBLE_AND_COHERENT) != VISIBLE_AND_COHERENT) continue;
        MemoryAllocateInfo wanted = { 5, NULL, needed.size, i };
        if (CALL_NEXT(device, Result, vkAllocateMemory, (Handle, const MemoryAllocateInfo *, const void *, uint64_t *))(
                device, &wanted, NULL, &readback->memory))
            continue;
        CALL_NEXT(device, Result, vkBindBufferMemory, (Handle, uint64_t, uint64_t, uint64_t))(device, readback->buffer, readback->memory, 0);
        if (CALL_NEXT(device, Result, vkMapMemory, (Handle, uint64_t, uint64_t, uint64_t, uint32_t, void **))(
                device, readback->memory, 0, WHOLE_SIZE, 0, &readback->pointer) == SUCCESS)
            return readback;
    }
    return NULL;
}

static void copy_buffer(Handle commands, const Readback *to, uint64_t from, uint64_t offset) {
    struct { uint64_t from, to, size; } region = { offset, 0, to->size };
    if (to->size == 0) return;
    CALL_NEXT(commands, void, vkCmdCopyBuffer, (Handle, uint64_t, uint64_t, uint32_t, const void *))(
        commands, from, to->buffer, 1, &region);
}

/* Formats whose texels are written as four 32-bit components. */
enum { UNORM, SNORM, SRGB, INTEGER, SIGNED, FLOAT };
static const struct { int32_t format; int bits, components, kind; bool swapped; } FORMATS[] = {
    { 9, 8, 1, UNORM, false },    { 10, 8, 1, SNORM, false },   { 13, 8, 1, INTEGER, false }, { 14, 8, 1, SIGNED, false },
    { 16, 8, 2, UNORM, false },   { 17, 8, 2, SNORM, false },   { 20, 8, 2, INTEGER, false }, { 21, 8, 2, SIGNED, false },
    { 37, 8, 4, UNORM, false },   { 38, 8, 4, SNORM, false },   { 41, 8, 4, INTEGER, false }, { 42, 8, 4, SIGNED, false },
    { 43, 8, 4, SRGB, false },    { 44, 8, 4, UNORM, true },    { 50, 8, 4, SRGB, true },     { 70, 16, 1, UNORM, false },
    { 71, 16, 1, SNORM, false },  { 74, 16, 1, INTEGER, false },{ 75, 16, 1, SIGNED, false }, { 76, 16, 1, FLOAT, false },
    { 77, 16, 2, UNORM, false },  { 78, 16, 2, SNORM, false },  { 81, 16, 2, INTEGER, false },{ 82, 16, 2, SIGNED, false },
    { 83, 16, 2, FLOAT, false },  { 91, 16, 4, UNORM, false },  { 92, 16, 4, SNORM, false },  { 95, 16, 4, INTEGER, false },
    { 96, 16, 4, SIGNED, false }, { 97, 16, 4, FLOAT, false },  { 98, 32, 1, INTEGER, false },{ 99, 32, 1, SIGNED, false },
    { 100, 32, 1, FLOAT, false }, { 101, 32, 2, INTEGER, false },{ 102, 32, 2, SIGNED, false },{ 103, 32, 2, FLOAT, false },
    { 107, 32, 4, INTEGER, false },{ 108, 32, 4, SIGNED, false },{ 109, 32, 4, FLOAT, false },
};

static int find_format(int32_t format) {
    for (unsigned i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (FORMATS[i].format == format) return (int)i;
    return -1;
}

static float half_to_float(uint32_t bits) {
    int exponent = bits >> 10 & 31;
    float fraction = (float)(bits & 1023);
    float size = exponent == 0 ? ldexpf(fraction, -24) : exponent == 31 ? (fraction > 0 ? NAN : INFINITY) : ldexpf(1024 + fraction, exponent - 25);
    return bits >> 15 ? -size : size;
}

static uint32_t convert_component(uint32_t raw, int bits, int kind) {
    uint32_t top = bits == 32 ? ~0u : (1u << bits) - 1;
    int32_t number = bits == 32 ? (int32_t)raw : (int32_t)(raw << (32 - bits)) >> (32 - bits);
    float real = 0;
    switch (kind) {
    case INTEGER: return raw;
    case SIGNED: return (uint32_t)number;
    case UNORM: real = (float)raw / (float)top; break;
    case SNORM: real = fmaxf((float)number / (float)(top >> 1), -1); break;
    case SRGB:
        real = (float)raw / (float)top;
        real = real <= 0.04045f ? real / 12.92f : powf((real + 0.055f) / 1.055f, 2.4f);
        break;
    default:
        if (bits == 32) return raw;
        real = half_to_float(raw);
    }
    uint32_t result;
    memcpy(&result, &real, sizeof result);
    return result;
}

/* In the layout of `file` of an image in case.toml. */
static void write_texels(FILE *file, const Readback *readback) {
    int at = find_format(readback->format);
    int bytes = FORMATS[at].bits / 8, components = FORMATS[at].components, kind = FORMATS[at].kind;
    uint64_t texels = readback->size / (uint64_t)(bytes * components);
    const unsigned char *raw = readback->pointer;
    for (uint64_t texel = 0; texel < texels; texel++) {
        float one = 1;
        uint32_t all[4] = { 0, 0, 0, 1 };
        if (kind != INTEGER && kind != SIGNED) memcpy(&all[3], &one, sizeof one);
        for (int i = 0; i < components; i++, raw += bytes) {
            uint32_t word = 0;
            memcpy(&word, raw, (size_t)bytes);
            int place = FORMATS[at].swapped && i < 3 ? 2 - i : i;
            all[place] = convert_component(word, FORMATS[at].bits, kind == SRGB && i == 3 ? UNORM : kind);
        }
        fwrite(all, sizeof all, 1, file);
    }
}

/* Inputs of a dispatch. */

static void add_readback(Dispatch *dispatch, Readback *readback) {
    readback->next = dispatch->readbacks;
    dispatch->readbacks = readback;
}

static void add_buffer(Handle commands, Dispatch *dispatch, uint32_t set, const Descriptor *descriptor, uint32_t dynamic) {
    const Buffer *buffer = find_object(BUFFERS, descriptor->buffer.buffer);
    if (!buffer) return;
    uint64_t offset = descriptor->buffer.offset + dynamic;
    uint64_t size = descriptor->buffer.range == WHOLE_SIZE ? buffer->size - offset : descriptor->buffer.range;
    Readback *readback = size <= MAX_READBACK_BYTES ? create_readback(commands, size) : NULL;
    if (!readback) {
        dispatch->notes = append_format(dispatch->notes, "# buffer %u.%u: %" PRIu64 " bytes, not recorded\n", set, descriptor->binding, size);
        return;
    }
    snprintf(readback->table, sizeof readback->table, "[buffer.\"%u.%u\"]", set, descriptor->binding);
    snprintf(readback->file, sizeof readback->file, "%u.%u.bin", set, descriptor->binding);
    copy_buffer(commands, readback, descriptor->buffer.buffer, offset);
    add_readback(dispatch, readback);
}

static void add_image(Handle commands, Dispatch *dispatch, uint32_t set, const Descriptor *descriptor) {
    enum { GENERAL = 1, TRANSFER_SOURCE_LAYOUT = 6, COLOUR = 1, CUBE = 3 };
    const ViewInfo *view = find_object(VIEWS, descriptor->image.view);
    const ImageInfo *image = view ? find_object(IMAGES, view->image) : NULL;
    if (!image) {
        dispatch->notes = append_format(dispatch->notes, "# image %u.%u: not recorded\n", set, descriptor->binding);
        return;
    }
    SubresourceRange range = view->range;
    if (range.levels == ~0u) range.levels = image->levels - range.level;
    if (range.layers == ~0u) range.layers = image->layers - range.layer;
    uint32_t size[3];
    for (int i = 0; i < 3; i++) size[i] = image->size[i] >> range.level ? image->size[i] >> range.level : 1;
    bool is_layered = view->view_type >= CUBE;
    char *lines = append_format(NULL, "size = [%u, %u, %u]\nmips = %u\n", size[0],
                       is_layered && image->image_type == 0 ? range.layers : size[1],
                       is_layered && image->image_type != 0 ? range.layers : size[2], range.levels);
    bool has_identity_swizzle = true;
    for (int i = 0; i < 4; i++) has_identity_swizzle = has_identity_swizzle && (view->components[i] == 0 || view->components[i] == 3 + i);
    int format = find_format(view->format);
    uint64_t bytes = format < 0 ? 0 : (uint64_t)size[0] * size[1] * size[2] * range.layers * (unsigned)(FORMATS[format].bits / 8 * FORMATS[format].components);
    bool is_recordable = format >= 0 && has_identity_swizzle && range.levels == 1 && image->samples == 1 && range.aspect == COLOUR && bytes <= MAX_READBACK_BYTES / 16
        && (image->usage & TRANSFER_SOURCE);
    Readback *readback = is_recordable ? create_readback(commands, bytes) : NULL;
    if (!readback) {
        readback = allocate(sizeof *readback);
        lines = append_format(lines, "# contents not recorded: format %d, %u levels\n", view->format, range.levels);
    } else {
        readback->format = view->format;
        snprintf(readback->file, sizeof readback->file, "%u.%u.bin", set, descriptor->binding);
        bool is_general = descriptor->image.layout == GENERAL;
        int32_t layout = is_general ? GENERAL : TRANSFER_SOURCE_LAYOUT;
        ImageBarrier barrier = { 45, NULL, 0x10000, 0x800, descriptor->image.layout, layout, ~0u, ~0u, view->image, range };
        typedef void (*Barrier)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
        Barrier barriers = (Barrier)next_function(commands, "vkCmdPipelineBarrier");
        if (!is_general) barriers(commands, 0x10000, 0x1000, 0, 0, NULL, 0, NULL, 1, &barrier);
        ImageCopy region = { 0, 0, 0, range.aspect, range.level, range.layer, range.layers, { 0 }, { size[0], size[1], size[2] } };
        CALL_NEXT(commands, void, vkCmdCopyImageToBuffer, (Handle, uint64_t, int32_t, uint64_t, uint32_t, const void *))(
            commands, view->image, layout, readback->buffer, 1, &region);
        barrier.from = 0x800;
        barrier.to = 0x18000;
        barrier.from_layout = layout;
        barrier.to_layout = descriptor->image.layout;
        if (!is_general) barriers(commands, 0x1000, 0x10000, 0, 0, NULL, 0, NULL, 1, &barrier);
    }
    readback->lines = lines;
    snprintf(readback->table, sizeof readback->table, "[image.\"%u.%u\"]", set, descriptor->binding);
    add_readback(dispatch, readback);
}

static void add_sampler(Dispatch *dispatch, uint32_t set, const Descriptor *descriptor) {
    static const char *const EDGES[] = { "repeat", "mirror", "clamp" };
    const SamplerInfo *sampler = find_object(SAMPLERS, descriptor->image.sampler);
    Readback *readback = allocate(sizeof *readback);
    snprintf(readback->table, sizeof readback->table, "[sampler.\"%u.%u\"]", set, descriptor->binding);
    bool is_supported = sampler && sampler->mag_filter == sampler->min_filter && sampler->mag_filter < 2 && sampler->address_modes[0] < 3
        && sampler->address_modes[0] == sampler->address_modes[1];
    readback->lines = is_supported
        ? append_format(NULL, "filter = \"%s\"\nedge = \"%s\"\n", sampler->mag_filter ? "linear" : "nearest", EDGES[sampler->address_modes[0]])
        : append_format(NULL, "# not one of those that are computed\n");
    add_readback(dispatch, readback);
}

/* Buffers with an address in the push constants. */
static void add_address_buffers(Handle commands, Dispatch *dispatch) {
    for (unsigned at = 0; at + 8 <= MAX_PUSH_BYTES; at += 8) {
        uint64_t word;
        memcpy(&word, dispatch->push + at, sizeof word);
        if (!dispatch->pushed[at] || !dispatch->pushed[at + 7] || !word) continue;
        for (unsigned i = 0; i < object_counts[BUFFERS]; i++) {
            const Buffer *buffer = objects[BUFFERS][i].value;
            if (!buffer->address || word < buffer->address || word - buffer->address >= buffer->size) continue;
            uint64_t offset = word - buffer->address;
            Readback *readback = buffer->size - offset <= MAX_READBACK_BYTES ? create_readback(commands, buffer->size - offset) : NULL;
            if (!readback) {
                dispatch->notes = append_format(dispatch->notes, "# the buffer behind push@%u: not recorded\n", at);
                continue;
            }
            snprintf(readback->table, sizeof readback->table, "[address.\"push%u\"]", at);
            snprintf(readback->file, sizeof readback->file, "push%u.bin", at);
            readback->lines = append_format(NULL, "at = \"push@%u\"\n", at);
            copy_buffer(commands, readback, objects[BUFFERS][i].key, offset);
            add_readback(dispatch, readback);
        }
    }
}

/* Dynamic offsets are ordered by binding, then by element. */
static uint32_t dynamic_offset(const DescriptorSet *set, const uint32_t *offsets, const Descriptor *descriptor) {
    uint32_t before = 0;
    if (descriptor->kind < UNIFORM_BUFFER_DYNAMIC || descriptor->kind > STORAGE_BUFFER_DYNAMIC || !set->layout || !offsets) return 0;
    for (uint32_t i = 0; i < set->layout->count; i++) {
        const LayoutBinding *binding = &set->layout->bindings[i];
        if (binding->binding < descriptor->binding && binding->type >= UNIFORM_BUFFER_DYNAMIC && binding->type <= STORAGE_BUFFER_DYNAMIC)
            before += binding->count;
    }
    return offsets[before + descriptor->element];
}

static bool is_selected(void) {
    static unsigned count;
    unsigned first = 1, last = 16;
    const char *range = getenv("VK_LITMUS_CAPTURE_DISPATCHES");
    if (range && sscanf(range, "%u-%u", &first, &last) == 1) last = first;
    count++;
    return getenv("VK_LITMUS_CAPTURE") && count >= first && count <= last;
}

/* Called before a dispatch is recorded. */
static void capture_dispatch(Handle handle, const uint32_t grid[3], uint64_t indirect, uint64_t indirect_offset, const char *note) {
    pthread_mutex_lock(&lock);
    CommandBuffer *commands = find_object(COMMANDS, (uintptr_t)handle);
    if (!commands || !commands->pipeline || !is_selected()) {
        pthread_mutex_unlock(&lock);
        return;
    }
    Dispatch *dispatch = allocate(sizeof *dispatch);
    dispatch->pipeline = commands->pipeline;
    if (note) dispatch->notes = append_format(NULL, "# %s\n", note);
    if (grid) memcpy(dispatch->grid, grid, sizeof dispatch->grid);
    memcpy(dispatch->push, commands->push, sizeof dispatch->push);
    memcpy(dispatch->pushed, commands->pushed, sizeof dispatch->pushed);
    typedef void (*Barrier)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
    Barrier barriers = (Barrier)next_function(handle, "vkCmdPipelineBarrier");
    MemoryBarrier before = { 46, NULL, 0x10000, 0x800 }, after = { 46, NULL, 0x1000, 0x2000 };
    barriers(handle, 0x10000, 0x1000, 0, 1, &before, 0, NULL, 0, NULL);
    if (!grid && (dispatch->indirect = create_readback(handle, 12))) copy_buffer(handle, dispatch->indirect, indirect, indirect_offset);
    for (uint32_t number = 0; number < MAX_SETS; number++) {
        const DescriptorSet *set = commands->sets[number];
        for (uint32_t i = 0; set && i < set->count; i++) {
            const Descriptor *descriptor = &set->descriptors[i];
            if (descriptor->element > 0 || descriptor->kind < 0) {
                dispatch->notes = append_format(dispatch->notes, "# element %u of %u.%u: not recorded, a case has one\n", descriptor->element, number, descriptor->binding);
                continue;
            }
            if (descriptor->kind == SAMPLER || descriptor->kind == IMAGE_AND_SAMPLER) add_sampler(dispatch, number, descriptor);
            if (descriptor->kind >= IMAGE_AND_SAMPLER && descriptor->kind <= STORAGE_IMAGE) add_image(handle, dispatch, number, descriptor);
            if (descriptor->kind == UNIFORM_TEXELS || descriptor->kind == STORAGE_TEXELS || descriptor->kind > STORAGE_BUFFER_DYNAMIC)
                dispatch->notes = append_format(dispatch->notes, "# descriptor %u.%u of type %d: not recorded\n", number, descriptor->binding, descriptor->kind);
            if (descriptor->kind >= UNIFORM_BUFFER && descriptor->kind <= STORAGE_BUFFER_DYNAMIC)
                add_buffer(handle, dispatch, number, descriptor, dynamic_offset(set, commands->offsets[number], descriptor));
        }
    }
    add_address_buffers(handle, dispatch);
    barriers(handle, 0x1000, 0x14000, 0, 1, &after, 0, NULL, 0, NULL);
    *commands->last = dispatch;
    commands->last = &dispatch->next;
    pthread_mutex_unlock(&lock);
}

static void write_dispatch(const Dispatch *dispatch) {
    static unsigned number;
    char path[4096];
    int length = snprintf(path, sizeof path - 128, "%s/%ld-%03u", getenv("VK_LITMUS_CAPTURE"), (long)getpid(), ++number);
    if (length < 0 || (size_t)length >= sizeof path - 128 || mkdir(path, 0777) != 0) {
        fprintf(stderr, "capture: %s cannot be made\n", path);
        return;
    }
    char *end = path + length;
    strcpy(end, "/kernel.spv");
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(dispatch->pipeline->code.data, 1, dispatch->pipeline->code.size, file);
        fclose(file);
    }
    strcpy(end, "/case.toml");
    FILE *toml = fopen(path, "w");
    if (!toml) {
        fprintf(stderr, "capture: %s cannot be written\n", path);
        return;
    }
    uint32_t grid[3];
    memcpy(grid, dispatch->indirect ? dispatch->indirect->pointer : dispatch->grid, sizeof grid);
    fprintf(toml, "%smodule = \"kernel.spv\"\nentry = \"%s\"\ngrid = [%u, %u, %u]\n", dispatch->notes ? dispatch->notes : "",
            dispatch->pipeline->entry, grid[0], grid[1], grid[2]);
    if (dispatch->pipeline->subgroup_size) fprintf(toml, "subgroup_size = %u\n", dispatch->pipeline->subgroup_size);
    fprintf(toml, "spec = {");
    for (uint32_t i = 0; i < dispatch->pipeline->constant_count; i++)
        fprintf(toml, "%s \"%u\" = %" PRId64, i ? "," : "", dispatch->pipeline->constants[i].id, dispatch->pipeline->constants[i].value);
    fprintf(toml, " }\npush = [");
    for (unsigned at = 0; at + 4 <= MAX_PUSH_BYTES; at += 4) {
        uint32_t word;
        memcpy(&word, dispatch->push + at, sizeof word);
        if (dispatch->pushed[at]) fprintf(toml, " { offset = %u, u32 = [%u] },", at, word);
    }
    fprintf(toml, " ]\n");
    for (const Readback *readback = dispatch->readbacks; readback; readback = readback->next) {
        fprintf(toml, "%s\n%s", readback->table, readback->lines ? readback->lines : "");
        if (!readback->file[0]) continue;
        fprintf(toml, "file = \"%s\"\n", readback->file);
        snprintf(end, 128, "/%s", readback->file);
        file = fopen(path, "wb");
        if (!file) continue;
        if (readback->format) write_texels(file, readback);
        else fwrite(readback->pointer, 1, readback->size, file);
        fclose(file);
    }
    if (fclose(toml) != 0) fprintf(stderr, "capture: %s cannot be written\n", path);
}

/* Command buffers. */

static void free_readbacks(Handle device, Readback *readback) {
    while (readback) {
        Readback *next = readback->next;
        if (readback->buffer) CALL_NEXT(device, void, vkDestroyBuffer, (Handle, uint64_t, const void *))(device, readback->buffer, NULL);
        if (readback->memory) CALL_NEXT(device, void, vkFreeMemory, (Handle, uint64_t, const void *))(device, readback->memory, NULL);
        free(readback->lines);
        free(readback);
        readback = next;
    }
}

static Result layer_vkBeginCommandBuffer(Handle handle, const void *info) {
    pthread_mutex_lock(&lock);
    CommandBuffer *commands = find_object(COMMANDS, (uintptr_t)handle);
    if (!commands) commands = store_object(COMMANDS, (uintptr_t)handle, allocate(sizeof *commands));
    for (Dispatch *dispatch = commands->first; dispatch;) {
        Dispatch *next = dispatch->next;
        Handle device = devices[device_index(handle)].device;
        free_readbacks(device, dispatch->readbacks);
        free_readbacks(device, dispatch->indirect);
        free(dispatch->notes);
        free(dispatch);
        dispatch = next;
    }
    for (unsigned i = 0; i < MAX_SETS; i++) free(commands->offsets[i]);
    memset(commands, 0, sizeof *commands);
    commands->last = &commands->first;
    pthread_mutex_unlock(&lock);
    return CALL_NEXT(handle, Result, vkBeginCommandBuffer, (Handle, const void *))(handle, info);
}

enum { COMPUTE = 1 };

static void layer_vkCmdBindPipeline(Handle handle, int32_t point, uint64_t pipeline) {
    CALL_NEXT(handle, void, vkCmdBindPipeline, (Handle, int32_t, uint64_t))(handle, point, pipeline);
    pthread_mutex_lock(&lock);
    CommandBuffer *commands = find_object(COMMANDS, (uintptr_t)handle);
    if (commands && point == COMPUTE) commands->pipeline = find_object(PIPELINES, pipeline);
    pthread_mutex_unlock(&lock);
}

static void layer_vkCmdBindDescriptorSets(Handle handle, int32_t point, uint64_t layout, uint32_t first, uint32_t count,
                                          const uint64_t *sets, uint32_t offset_count, const uint32_t *offsets) {
    CALL_NEXT(handle, void, vkCmdBindDescriptorSets,
          (Handle, int32_t, uint64_t, uint32_t, uint32_t, const uint64_t *, uint32_t, const uint32_t *))(
        handle, point, layout, first, count, sets, offset_count, offsets);
    pthread_mutex_lock(&lock);
    CommandBuffer *commands = find_object(COMMANDS, (uintptr_t)handle);
    for (uint32_t i = 0; commands && point == COMPUTE && i < count && first + i < MAX_SETS; i++) {
        const DescriptorSet *set = find_object(DESCRIPTOR_SETS, sets[i]);
        commands->sets[first + i] = set;
        uint32_t dynamic_count = 0;
        for (uint32_t j = 0; set && set->layout && j < set->layout->count; j++) {
            int32_t type = set->layout->bindings[j].type;
            if (type == UNIFORM_BUFFER_DYNAMIC || type == STORAGE_BUFFER_DYNAMIC) dynamic_count += set->layout->bindings[j].count;
        }
        free(commands->offsets[first + i]);
        if (dynamic_count > offset_count) dynamic_count = offset_count;
        commands->offsets[first + i] = dynamic_count ? duplicate(offsets, dynamic_count * sizeof *offsets) : NULL;
        offsets += dynamic_count;
        offset_count -= dynamic_count;
    }
    pthread_mutex_unlock(&lock);
}

static void layer_vkCmdPushConstants(Handle handle, uint64_t layout, uint32_t stages, uint32_t offset, uint32_t size, const void *values) {
    enum { COMPUTE_STAGE = 0x20 };
    CALL_NEXT(handle, void, vkCmdPushConstants, (Handle, uint64_t, uint32_t, uint32_t, uint32_t, const void *))(
        handle, layout, stages, offset, size, values);
    pthread_mutex_lock(&lock);
    CommandBuffer *commands = find_object(COMMANDS, (uintptr_t)handle);
    if (commands && stages & COMPUTE_STAGE && offset <= MAX_PUSH_BYTES && size <= MAX_PUSH_BYTES - offset) {
        memcpy(commands->push + offset, values, size);
        memset(commands->pushed + offset, 1, size);
    }
    pthread_mutex_unlock(&lock);
}

static void layer_vkCmdDispatch(Handle handle, uint32_t x, uint32_t y, uint32_t z) {
    capture_dispatch(handle, (uint32_t[3]){ x, y, z }, 0, 0, NULL);
    CALL_NEXT(handle, void, vkCmdDispatch, (Handle, uint32_t, uint32_t, uint32_t))(handle, x, y, z);
}

static void layer_vkCmdDispatchIndirect(Handle handle, uint64_t buffer, uint64_t offset) {
    capture_dispatch(handle, NULL, buffer, offset, NULL);
    CALL_NEXT(handle, void, vkCmdDispatchIndirect, (Handle, uint64_t, uint64_t))(handle, buffer, offset);
}

#define DISPATCH_BASE(name) \
    static void layer_##name(Handle handle, uint32_t a, uint32_t b, uint32_t c, uint32_t x, uint32_t y, uint32_t z) { \
        capture_dispatch(handle, (uint32_t[3]){ x, y, z }, 0, 0, a | b | c ? "the first workgroup is not 0,0,0: not recorded" : NULL); \
        CALL_NEXT(handle, void, name, (Handle, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t))(handle, a, b, c, x, y, z); \
    }
DISPATCH_BASE(vkCmdDispatchBase)
DISPATCH_BASE(vkCmdDispatchBaseKHR)

/* Writes the cases of a command buffer after its work has ended. */
static void write_captured_dispatches(Handle queue, Handle handle) {
    CommandBuffer *commands = find_object(COMMANDS, (uintptr_t)handle);
    if (!commands || !commands->first) return;
    if (CALL_NEXT(queue, Result, vkQueueWaitIdle, (Handle))(queue) != SUCCESS) return;
    for (const Dispatch *dispatch = commands->first; dispatch; dispatch = dispatch->next) write_dispatch(dispatch);
}

static Result layer_vkQueueSubmit(Handle queue, uint32_t count, const SubmitInfo *submits, uint64_t fence) {
    Result result = CALL_NEXT(queue, Result, vkQueueSubmit, (Handle, uint32_t, const SubmitInfo *, uint64_t))(queue, count, submits, fence);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; result == SUCCESS && i < count; i++)
        for (uint32_t j = 0; j < submits[i].command_count; j++) write_captured_dispatches(queue, submits[i].commands[j]);
    pthread_mutex_unlock(&lock);
    return result;
}

#define SUBMIT2(name) \
    static Result layer_##name(Handle queue, uint32_t count, const SubmitInfo2 *submits, uint64_t fence) { \
        Result result = CALL_NEXT(queue, Result, name, (Handle, uint32_t, const SubmitInfo2 *, uint64_t))(queue, count, submits, fence); \
        pthread_mutex_lock(&lock); \
        for (uint32_t i = 0; result == SUCCESS && i < count; i++) \
            for (uint32_t j = 0; j < submits[i].command_count; j++) write_captured_dispatches(queue, submits[i].commands[j].commands); \
        pthread_mutex_unlock(&lock); \
        return result; \
    }
SUBMIT2(vkQueueSubmit2)
SUBMIT2(vkQueueSubmit2KHR)

/* Entry points for the loader. */

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *created) {
    Result result = create_instance(info, allocator, created);
    if (result != SUCCESS) return result;
    LOAD_INSTANCE_FUNCTION(get_memory_properties, "vkGetPhysicalDeviceMemoryProperties");
    LOAD_INSTANCE_FUNCTION(get_properties2, "vkGetPhysicalDeviceProperties2");
    return result;
}

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    Result result = create_device(physical, info, allocator, created);
    if (result == SUCCESS) physical_devices[device_index(*created)] = physical;
    return result;
}

static Function find_layer_function(const char *name) {
    COMMON_LAYER_FUNCTIONS
    LAYER_FUNCTION(vkCreateShaderModule)
    LAYER_FUNCTION(vkCreateComputePipelines)
    LAYER_FUNCTION(vkCreateDescriptorSetLayout)
    LAYER_FUNCTION(vkAllocateDescriptorSets)
    LAYER_FUNCTION(vkUpdateDescriptorSets)
    LAYER_FUNCTION(vkCreateBuffer)
    LAYER_FUNCTION(vkDestroyBuffer)
    LAYER_FUNCTION(vkGetBufferDeviceAddress)
    LAYER_FUNCTION(vkGetBufferDeviceAddressKHR)
    LAYER_FUNCTION(vkGetBufferDeviceAddressEXT)
    LAYER_FUNCTION(vkCreateImage)
    LAYER_FUNCTION(vkCreateImageView)
    LAYER_FUNCTION(vkCreateSampler)
    LAYER_FUNCTION(vkBeginCommandBuffer)
    LAYER_FUNCTION(vkCmdBindPipeline)
    LAYER_FUNCTION(vkCmdBindDescriptorSets)
    LAYER_FUNCTION(vkCmdPushConstants)
    LAYER_FUNCTION(vkCmdDispatch)
    LAYER_FUNCTION(vkCmdDispatchIndirect)
    LAYER_FUNCTION(vkCmdDispatchBase)
    LAYER_FUNCTION(vkCmdDispatchBaseKHR)
    LAYER_FUNCTION(vkQueueSubmit)
    LAYER_FUNCTION(vkQueueSubmit2)
    LAYER_FUNCTION(vkQueueSubmit2KHR)
    return NULL;
}
