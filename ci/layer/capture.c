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

enum { MOST_BYTES = 1 << 28, SETS = 32, PUSHED = 256, TRANSFER_SOURCE = 1, TRANSFER_DESTINATION = 2 };
enum { SAMPLER, IMAGE_AND_SAMPLER, SAMPLED_IMAGE, STORAGE_IMAGE, UNIFORM_TEXELS, STORAGE_TEXELS, UNIFORM_BUFFER, STORAGE_BUFFER,
       UNIFORM_BUFFER_DYNAMIC, STORAGE_BUFFER_DYNAMIC };
enum { MODULE_INFO = 16, SUBGROUP_SIZE_INFO = 1000225001, SUBGROUP_PROPERTIES = 1000094000, PROPERTIES2 = 1000059001 };
static const uint64_t WHOLE = ~(uint64_t)0;

typedef struct ModuleInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    size_t size;
    const void *code;
} ModuleInfo;

typedef struct MapEntry {
    uint32_t id, offset;
    size_t size;
} MapEntry;

typedef struct Specialization {
    uint32_t count;
    const MapEntry *entries;
    size_t size;
    const void *data;
} Specialization;

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
        const Specialization *specialization;
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

typedef struct SetInfo {
    int32_t type;
    const void *next;
    uint64_t pool;
    uint32_t count;
    const uint64_t *layouts;
} SetInfo;

typedef struct ImageDescriptor {
    uint64_t sampler, view;
    int32_t layout;
} ImageDescriptor;

typedef struct BufferDescriptor {
    uint64_t buffer, offset, range;
} BufferDescriptor;

typedef struct Write {
    int32_t type;
    const void *next;
    uint64_t set;
    uint32_t binding, element, count;
    int32_t kind;
    const ImageDescriptor *images;
    const BufferDescriptor *buffers;
    const uint64_t *texels;
} Write;

typedef struct CopySet {
    int32_t type;
    const void *next;
    uint64_t from;
    uint32_t from_binding, from_element;
    uint64_t to;
    uint32_t to_binding, to_element, count;
} CopySet;

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

typedef struct Range {
    uint32_t aspect, level, levels, layer, layers;
} Range;

typedef struct ViewInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t image;
    int32_t view_type, format, components[4];
    Range range;
} ViewInfo;

typedef struct SamplerInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    int32_t magnify, minify, levels, edges[3];
} SamplerInfo;

typedef struct AddressInfo {
    int32_t type;
    const void *next;
    uint64_t buffer;
} AddressInfo;

typedef struct AllocateInfo {
    int32_t type;
    const void *next;
    uint64_t size;
    uint32_t index;
} AllocateInfo;

typedef struct Requirements {
    uint64_t size, alignment;
    uint32_t types;
} Requirements;

typedef struct MemoryTypes {
    uint32_t count;
    struct { uint32_t flags, heap; } types[32];
    uint32_t heap_count;
    struct { uint64_t size; uint32_t flags; } heaps[16];
} MemoryTypes;

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
    Range range;
} ImageBarrier;

typedef struct ImageCopy {
    uint64_t offset;
    uint32_t row, height, aspect, level, layer, layers;
    int32_t begin[3];
    uint32_t size[3];
} ImageCopy;

typedef struct Submit {
    int32_t type;
    const void *next;
    uint32_t wait_count;
    const uint64_t *waits;
    const uint32_t *stages;
    uint32_t command_count;
    const Handle *commands;
} Submit;

typedef struct CommandInfo {
    int32_t type;
    const void *next;
    Handle commands;
} CommandInfo;

typedef struct Submit2 {
    int32_t type;
    const void *next;
    uint32_t flags, wait_count;
    const void *waits;
    uint32_t command_count;
    const CommandInfo *commands;
} Submit2;

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

typedef struct Layout {
    uint32_t count;
    LayoutBinding *bindings;
} Layout;

typedef struct Descriptor {
    uint32_t binding, element;
    int32_t kind;
    ImageDescriptor image;
    BufferDescriptor buffer;
} Descriptor;

typedef struct Set {
    const Layout *layout;
    uint32_t count;
    Descriptor *descriptors;
} Set;

typedef struct Buffer {
    uint64_t size, address;
} Buffer;

/* Host memory with a copy, and the source of the copy. */
typedef struct Kept {
    char table[96]; /* The header of its table in case.toml. */
    char file[64];
    char *lines;
    uint64_t buffer, memory, size;
    void *pointer;
    int32_t format; /* Format of an image; 0 for a buffer. */
    struct Kept *next;
} Kept;

typedef struct Dispatch {
    const Pipeline *pipeline;
    uint32_t grid[3];
    Kept *indirect, *kept;
    char *notes;
    unsigned char push[PUSHED];
    bool pushed[PUSHED];
    struct Dispatch *next;
} Dispatch;

typedef struct Commands {
    const Pipeline *pipeline;
    const Set *sets[SETS];
    uint32_t *offsets[SETS];
    unsigned char push[PUSHED];
    bool pushed[PUSHED];
    Dispatch *first, **last;
} Commands;

/* Maps a handle and its kind to the state of the object. */
enum { MODULES, LAYOUTS, SETS_KNOWN, PIPELINES, BUFFERS, IMAGES, VIEWS, SAMPLERS, COMMANDS, KINDS };
static struct { uint64_t key; void *value; } *known[KINDS];
static unsigned known_count[KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Handle physical_devices[DEVICES];
static void (*memory_of)(Handle, MemoryTypes *);
static void (*properties_of)(Handle, void *);

static void *room(size_t bytes) {
    void *made = calloc(1, bytes ? bytes : 1);
    if (!made) abort();
    return made;
}

static void *copied(const void *from, size_t bytes) { return memcpy(room(bytes), from, bytes); }

static void *find(int kind, uint64_t key) {
    for (unsigned i = known_count[kind]; i-- > 0;)
        if (known[kind][i].key == key) return known[kind][i].value;
    return NULL;
}

/* Not freed: recorded commands still point to the old state. */
static void *keep(int kind, uint64_t key, void *value) {
    unsigned i = 0;
    while (i < known_count[kind] && known[kind][i].key != key) i++;
    if (i == known_count[kind]) {
        if ((i & (i + 1)) == 0 || i == 0) {
            known[kind] = realloc(known[kind], (2 * (size_t)i + 2) * sizeof *known[kind]);
            if (!known[kind]) abort();
        }
        known_count[kind]++;
    }
    known[kind][i].key = key;
    return known[kind][i].value = value;
}

/* A growable text. */
static char *with(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static char *with(char *text, const char *format, ...) {
    va_list all;
    va_start(all, format);
    int more = vsnprintf(NULL, 0, format, all);
    va_end(all);
    size_t had = text ? strlen(text) : 0;
    text = realloc(text, had + (size_t)more + 1);
    if (!text) abort();
    va_start(all, format);
    vsnprintf(text + had, (size_t)more + 1, format, all);
    va_end(all);
    return text;
}

#define BELOW(handle, result, name, parameters) ((result(*)parameters)below(handle, #name))

/* Modules and pipelines. */

static Bytes *code_of(const ModuleInfo *info) {
    Bytes *code = room(sizeof *code);
    *code = (Bytes){ info->size, copied(info->code, info->size) };
    return code;
}

static Result layer_vkCreateShaderModule(Handle device, const ModuleInfo *info, const void *allocator, uint64_t *made) {
    Result result = BELOW(device, Result, vkCreateShaderModule, (Handle, const ModuleInfo *, const void *, uint64_t *))(
        device, info, allocator, made);
    pthread_mutex_lock(&lock);
    if (result == SUCCESS) keep(MODULES, *made, code_of(info));
    pthread_mutex_unlock(&lock);
    return result;
}

static uint32_t subgroup_size_of(Handle device) {
    struct { int32_t type; void *next; uint32_t size, stages, operations, quads; } subgroup = { SUBGROUP_PROPERTIES, NULL, 0, 0, 0, 0 };
    struct { int32_t type; void *next; char rest[4096]; } all = { PROPERTIES2, &subgroup, { 0 } };
    if (properties_of) properties_of(physical_devices[place_of(device)], &all);
    return subgroup.size;
}

static Pipeline *pipeline_of(Handle device, const PipelineInfo *info) {
    Pipeline *pipeline = room(sizeof *pipeline);
    pipeline->subgroup_size = subgroup_size_of(device);
    const Bytes *code = find(MODULES, info->stage.module);
    for (const Header *at = info->stage.next; at; at = at->next) {
        if (at->type == MODULE_INFO && !code) code = code_of((const ModuleInfo *)at);
        if (at->type == SUBGROUP_SIZE_INFO) pipeline->subgroup_size = ((const SubgroupSize *)at)->size;
    }
    if (code) pipeline->code = *code;
    pipeline->entry = copied(info->stage.entry, strlen(info->stage.entry) + 1);
    const Specialization *given = info->stage.specialization;
    if (!given) return pipeline;
    pipeline->constants = room(given->count * sizeof *pipeline->constants);
    for (uint32_t i = 0; i < given->count; i++) {
        const MapEntry *entry = &given->entries[i];
        if (entry->size > sizeof(int64_t)) continue;
        int64_t value = 0;
        memcpy(&value, (const char *)given->data + entry->offset, entry->size);
        pipeline->constants[pipeline->constant_count].id = entry->id;
        pipeline->constants[pipeline->constant_count++].value = value;
    }
    return pipeline;
}

static Result layer_vkCreateComputePipelines(
    Handle device, uint64_t cache, uint32_t count, const PipelineInfo *infos, const void *allocator, uint64_t *made) {
    Result result = BELOW(device, Result, vkCreateComputePipelines,
                          (Handle, uint64_t, uint32_t, const PipelineInfo *, const void *, uint64_t *))(
        device, cache, count, infos, allocator, made);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++)
        if (result == SUCCESS && made[i]) keep(PIPELINES, made[i], pipeline_of(device, &infos[i]));
    pthread_mutex_unlock(&lock);
    return result;
}

/* Descriptors. */

static Result layer_vkCreateDescriptorSetLayout(Handle device, const LayoutInfo *info, const void *allocator, uint64_t *made) {
    Result result = BELOW(device, Result, vkCreateDescriptorSetLayout, (Handle, const LayoutInfo *, const void *, uint64_t *))(
        device, info, allocator, made);
    if (result != SUCCESS) return result;
    Layout *layout = room(sizeof *layout);
    *layout = (Layout){ info->count, copied(info->bindings, info->count * sizeof *info->bindings) };
    for (uint32_t i = 0; i < info->count; i++)
        if (layout->bindings[i].samplers)
            layout->bindings[i].samplers = copied(layout->bindings[i].samplers, layout->bindings[i].count * sizeof(uint64_t));
    pthread_mutex_lock(&lock);
    keep(LAYOUTS, *made, layout);
    pthread_mutex_unlock(&lock);
    return result;
}

static Descriptor *descriptor_of(Set *set, uint32_t binding, uint32_t element) {
    for (uint32_t i = 0; i < set->count; i++)
        if (set->descriptors[i].binding == binding && set->descriptors[i].element == element) return &set->descriptors[i];
    set->descriptors = realloc(set->descriptors, (set->count + 1) * sizeof *set->descriptors);
    if (!set->descriptors) abort();
    set->descriptors[set->count] = (Descriptor){ .binding = binding, .element = element, .kind = -1 };
    return &set->descriptors[set->count++];
}

static Result layer_vkAllocateDescriptorSets(Handle device, const SetInfo *info, uint64_t *made) {
    Result result = BELOW(device, Result, vkAllocateDescriptorSets, (Handle, const SetInfo *, uint64_t *))(device, info, made);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; result == SUCCESS && i < info->count; i++) {
        Set *set = room(sizeof *set);
        set->layout = find(LAYOUTS, info->layouts[i]);
        for (uint32_t j = 0; set->layout && j < set->layout->count; j++) {
            const LayoutBinding *binding = &set->layout->bindings[j];
            if (!binding->samplers) continue;
            Descriptor *descriptor = descriptor_of(set, binding->binding, 0);
            descriptor->kind = binding->type;
            descriptor->image.sampler = binding->samplers[0];
        }
        keep(SETS_KNOWN, made[i], set);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void layer_vkUpdateDescriptorSets(Handle device, uint32_t count, const Write *writes, uint32_t copy_count, const CopySet *copies) {
    BELOW(device, void, vkUpdateDescriptorSets, (Handle, uint32_t, const Write *, uint32_t, const CopySet *))(
        device, count, writes, copy_count, copies);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        Set *set = find(SETS_KNOWN, writes[i].set);
        for (uint32_t j = 0; set && j < writes[i].count; j++) {
            Descriptor *descriptor = descriptor_of(set, writes[i].binding, writes[i].element + j);
            uint64_t always = descriptor->image.sampler;
            descriptor->kind = writes[i].kind;
            if (descriptor->kind <= STORAGE_IMAGE) descriptor->image = writes[i].images[j];
            if (!descriptor->image.sampler) descriptor->image.sampler = always;
            if (descriptor->kind >= UNIFORM_BUFFER && descriptor->kind <= STORAGE_BUFFER_DYNAMIC)
                descriptor->buffer = writes[i].buffers[j];
        }
    }
    for (uint32_t i = 0; i < copy_count; i++) {
        Set *from = find(SETS_KNOWN, copies[i].from), *to = find(SETS_KNOWN, copies[i].to);
        for (uint32_t j = 0; from && to && j < copies[i].count; j++) {
            Descriptor source = *descriptor_of(from, copies[i].from_binding, copies[i].from_element + j);
            source.binding = copies[i].to_binding;
            source.element = copies[i].to_element + j;
            *descriptor_of(to, source.binding, source.element) = source;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Buffers, images, samplers. */

static Result layer_vkCreateBuffer(Handle device, const BufferInfo *info, const void *allocator, uint64_t *made) {
    BufferInfo own = *info;
    own.usage |= TRANSFER_SOURCE;
    Result result = BELOW(device, Result, vkCreateBuffer, (Handle, const BufferInfo *, const void *, uint64_t *))(
        device, &own, allocator, made);
    if (result != SUCCESS) return result;
    Buffer *buffer = room(sizeof *buffer);
    buffer->size = info->size;
    pthread_mutex_lock(&lock);
    keep(BUFFERS, *made, buffer);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Forget the address range, so that later words are not taken for addresses in it. */
static void layer_vkDestroyBuffer(Handle device, uint64_t gone, const void *allocator) {
    pthread_mutex_lock(&lock);
    Buffer *buffer = find(BUFFERS, gone);
    if (buffer) buffer->address = 0;
    pthread_mutex_unlock(&lock);
    BELOW(device, void, vkDestroyBuffer, (Handle, uint64_t, const void *))(device, gone, allocator);
}

#define ADDRESS(name) \
    static uint64_t layer_##name(Handle device, const AddressInfo *info) { \
        uint64_t address = BELOW(device, uint64_t, name, (Handle, const AddressInfo *))(device, info); \
        pthread_mutex_lock(&lock); \
        Buffer *buffer = find(BUFFERS, info->buffer); \
        if (buffer) buffer->address = address; \
        pthread_mutex_unlock(&lock); \
        return address; \
    }
ADDRESS(vkGetBufferDeviceAddress)
ADDRESS(vkGetBufferDeviceAddressKHR)
ADDRESS(vkGetBufferDeviceAddressEXT)

static Result layer_vkCreateImage(Handle device, const ImageInfo *info, const void *allocator, uint64_t *made) {
    enum { TRANSIENT = 0x40 };
    ImageInfo own = *info;
    if (!(own.usage & TRANSIENT)) own.usage |= TRANSFER_SOURCE;
    Result result = BELOW(device, Result, vkCreateImage, (Handle, const ImageInfo *, const void *, uint64_t *))(
        device, &own, allocator, made);
    pthread_mutex_lock(&lock);
    if (result == SUCCESS) keep(IMAGES, *made, copied(&own, sizeof own));
    pthread_mutex_unlock(&lock);
    return result;
}

#define REMEMBERED(name, kind, type) \
    static Result layer_##name(Handle device, const type *info, const void *allocator, uint64_t *made) { \
        Result result = BELOW(device, Result, name, (Handle, const type *, const void *, uint64_t *))(device, info, allocator, made); \
        pthread_mutex_lock(&lock); \
        if (result == SUCCESS) keep(kind, *made, copied(info, sizeof *info)); \
        pthread_mutex_unlock(&lock); \
        return result; \
    }
REMEMBERED(vkCreateImageView, VIEWS, ViewInfo)
REMEMBERED(vkCreateSampler, SAMPLERS, SamplerInfo)

/* Memory of the layer, the destination of copies. */

/* Allocated per command buffer. Returns NULL if memory is exhausted. */
static Kept *kept_of(Handle commands, uint64_t size) {
    Handle device = devices[place_of(commands)].device;
    enum { VISIBLE_AND_COHERENT = 6 };
    Kept *kept = room(sizeof *kept);
    kept->size = size;
    BufferInfo info = { 12, NULL, 0, size ? (size + 3) / 4 * 4 : 4, TRANSFER_DESTINATION, 0, 0, NULL };
    if (BELOW(device, Result, vkCreateBuffer, (Handle, const BufferInfo *, const void *, uint64_t *))(device, &info, NULL, &kept->buffer))
        return NULL;
    Requirements needed;
    BELOW(device, void, vkGetBufferMemoryRequirements, (Handle, uint64_t, Requirements *))(device, kept->buffer, &needed);
    MemoryTypes types;
    memory_of(physical_devices[place_of(commands)], &types);
    for (uint32_t i = 0; i < types.count; i++) {
        if (!(needed.types >> i & 1) || (types.types[i].flags & VISIBLE_AND_COHERENT) != VISIBLE_AND_COHERENT) continue;
        AllocateInfo wanted = { 5, NULL, needed.size, i };
        if (BELOW(device, Result, vkAllocateMemory, (Handle, const AllocateInfo *, const void *, uint64_t *))(
                device, &wanted, NULL, &kept->memory))
            continue;
        BELOW(device, Result, vkBindBufferMemory, (Handle, uint64_t, uint64_t, uint64_t))(device, kept->buffer, kept->memory, 0);
        if (BELOW(device, Result, vkMapMemory, (Handle, uint64_t, uint64_t, uint64_t, uint32_t, void **))(
                device, kept->memory, 0, WHOLE, 0, &kept->pointer) == SUCCESS)
            return kept;
    }
    return NULL;
}

static void copy_buffer(Handle commands, const Kept *to, uint64_t from, uint64_t offset) {
    struct { uint64_t from, to, size; } region = { offset, 0, to->size };
    if (to->size == 0) return;
    BELOW(commands, void, vkCmdCopyBuffer, (Handle, uint64_t, uint64_t, uint32_t, const void *))(
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

static int format_of(int32_t format) {
    for (unsigned i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (FORMATS[i].format == format) return (int)i;
    return -1;
}

static float half(uint32_t bits) {
    int exponent = bits >> 10 & 31;
    float fraction = (float)(bits & 1023);
    float size = exponent == 0 ? ldexpf(fraction, -24) : exponent == 31 ? (fraction > 0 ? NAN : INFINITY) : ldexpf(1024 + fraction, exponent - 25);
    return bits >> 15 ? -size : size;
}

static uint32_t component(uint32_t raw, int bits, int kind) {
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
        real = half(raw);
    }
    uint32_t result;
    memcpy(&result, &real, sizeof result);
    return result;
}

/* In the layout of `file` of an image in case.toml. */
static void write_texels(FILE *file, const Kept *kept) {
    int at = format_of(kept->format);
    int bytes = FORMATS[at].bits / 8, components = FORMATS[at].components, kind = FORMATS[at].kind;
    uint64_t texels = kept->size / (uint64_t)(bytes * components);
    const unsigned char *raw = kept->pointer;
    for (uint64_t texel = 0; texel < texels; texel++) {
        float one = 1;
        uint32_t all[4] = { 0, 0, 0, 1 };
        if (kind != INTEGER && kind != SIGNED) memcpy(&all[3], &one, sizeof one);
        for (int i = 0; i < components; i++, raw += bytes) {
            uint32_t word = 0;
            memcpy(&word, raw, (size_t)bytes);
            int place = FORMATS[at].swapped && i < 3 ? 2 - i : i;
            all[place] = component(word, FORMATS[at].bits, kind == SRGB && i == 3 ? UNORM : kind);
        }
        fwrite(all, sizeof all, 1, file);
    }
}

/* Inputs of a dispatch. */

static void add(Dispatch *dispatch, Kept *kept) {
    kept->next = dispatch->kept;
    dispatch->kept = kept;
}

static void add_buffer(Handle commands, Dispatch *dispatch, uint32_t set, const Descriptor *descriptor, uint32_t dynamic) {
    const Buffer *buffer = find(BUFFERS, descriptor->buffer.buffer);
    if (!buffer) return;
    uint64_t offset = descriptor->buffer.offset + dynamic;
    uint64_t size = descriptor->buffer.range == WHOLE ? buffer->size - offset : descriptor->buffer.range;
    Kept *kept = size <= MOST_BYTES ? kept_of(commands, size) : NULL;
    if (!kept) {
        dispatch->notes = with(dispatch->notes, "# buffer %u.%u: %" PRIu64 " bytes, not kept\n", set, descriptor->binding, size);
        return;
    }
    snprintf(kept->table, sizeof kept->table, "[buffer.\"%u.%u\"]", set, descriptor->binding);
    snprintf(kept->file, sizeof kept->file, "%u.%u.bin", set, descriptor->binding);
    copy_buffer(commands, kept, descriptor->buffer.buffer, offset);
    add(dispatch, kept);
}

static void add_image(Handle commands, Dispatch *dispatch, uint32_t set, const Descriptor *descriptor) {
    enum { GENERAL = 1, TRANSFER_SOURCE_LAYOUT = 6, COLOUR = 1, CUBE = 3 };
    const ViewInfo *view = find(VIEWS, descriptor->image.view);
    const ImageInfo *image = view ? find(IMAGES, view->image) : NULL;
    if (!image) {
        dispatch->notes = with(dispatch->notes, "# image %u.%u: not kept\n", set, descriptor->binding);
        return;
    }
    Range range = view->range;
    if (range.levels == ~0u) range.levels = image->levels - range.level;
    if (range.layers == ~0u) range.layers = image->layers - range.layer;
    uint32_t size[3];
    for (int i = 0; i < 3; i++) size[i] = image->size[i] >> range.level ? image->size[i] >> range.level : 1;
    bool layered = view->view_type >= CUBE;
    char *lines = with(NULL, "size = [%u, %u, %u]\nmips = %u\n", size[0],
                       layered && image->image_type == 0 ? range.layers : size[1],
                       layered && image->image_type != 0 ? range.layers : size[2], range.levels);
    bool plain = true;
    for (int i = 0; i < 4; i++) plain = plain && (view->components[i] == 0 || view->components[i] == 3 + i);
    int format = format_of(view->format);
    uint64_t bytes = format < 0 ? 0 : (uint64_t)size[0] * size[1] * size[2] * range.layers * (unsigned)(FORMATS[format].bits / 8 * FORMATS[format].components);
    bool kept_whole = format >= 0 && plain && range.levels == 1 && image->samples == 1 && range.aspect == COLOUR && bytes <= MOST_BYTES / 16
        && (image->usage & TRANSFER_SOURCE);
    Kept *kept = kept_whole ? kept_of(commands, bytes) : NULL;
    if (!kept) {
        kept = room(sizeof *kept);
        lines = with(lines, "# contents not kept: format %d, %u levels\n", view->format, range.levels);
    } else {
        kept->format = view->format;
        snprintf(kept->file, sizeof kept->file, "%u.%u.bin", set, descriptor->binding);
        bool general = descriptor->image.layout == GENERAL;
        int32_t layout = general ? GENERAL : TRANSFER_SOURCE_LAYOUT;
        ImageBarrier barrier = { 45, NULL, 0x10000, 0x800, descriptor->image.layout, layout, ~0u, ~0u, view->image, range };
        typedef void (*Barrier)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
        Barrier barriers = (Barrier)below(commands, "vkCmdPipelineBarrier");
        if (!general) barriers(commands, 0x10000, 0x1000, 0, 0, NULL, 0, NULL, 1, &barrier);
        ImageCopy region = { 0, 0, 0, range.aspect, range.level, range.layer, range.layers, { 0 }, { size[0], size[1], size[2] } };
        BELOW(commands, void, vkCmdCopyImageToBuffer, (Handle, uint64_t, int32_t, uint64_t, uint32_t, const void *))(
            commands, view->image, layout, kept->buffer, 1, &region);
        barrier.from = 0x800;
        barrier.to = 0x18000;
        barrier.from_layout = layout;
        barrier.to_layout = descriptor->image.layout;
        if (!general) barriers(commands, 0x1000, 0x10000, 0, 0, NULL, 0, NULL, 1, &barrier);
    }
    kept->lines = lines;
    snprintf(kept->table, sizeof kept->table, "[image.\"%u.%u\"]", set, descriptor->binding);
    add(dispatch, kept);
}

static void add_sampler(Dispatch *dispatch, uint32_t set, const Descriptor *descriptor) {
    static const char *const EDGES[] = { "repeat", "mirror", "clamp" };
    const SamplerInfo *sampler = find(SAMPLERS, descriptor->image.sampler);
    Kept *kept = room(sizeof *kept);
    snprintf(kept->table, sizeof kept->table, "[sampler.\"%u.%u\"]", set, descriptor->binding);
    bool known_one = sampler && sampler->magnify == sampler->minify && sampler->magnify < 2 && sampler->edges[0] < 3
        && sampler->edges[0] == sampler->edges[1];
    kept->lines = known_one
        ? with(NULL, "filter = \"%s\"\nedge = \"%s\"\n", sampler->magnify ? "linear" : "nearest", EDGES[sampler->edges[0]])
        : with(NULL, "# not one of those that are computed\n");
    add(dispatch, kept);
}

/* Buffers with an address in the push constants. */
static void add_addresses(Handle commands, Dispatch *dispatch) {
    for (unsigned at = 0; at + 8 <= PUSHED; at += 8) {
        uint64_t word;
        memcpy(&word, dispatch->push + at, sizeof word);
        if (!dispatch->pushed[at] || !dispatch->pushed[at + 7] || !word) continue;
        for (unsigned i = 0; i < known_count[BUFFERS]; i++) {
            const Buffer *buffer = known[BUFFERS][i].value;
            if (!buffer->address || word < buffer->address || word - buffer->address >= buffer->size) continue;
            uint64_t offset = word - buffer->address;
            Kept *kept = buffer->size - offset <= MOST_BYTES ? kept_of(commands, buffer->size - offset) : NULL;
            if (!kept) {
                dispatch->notes = with(dispatch->notes, "# the buffer behind push@%u: not kept\n", at);
                continue;
            }
            snprintf(kept->table, sizeof kept->table, "[address.\"push%u\"]", at);
            snprintf(kept->file, sizeof kept->file, "push%u.bin", at);
            kept->lines = with(NULL, "at = \"push@%u\"\n", at);
            copy_buffer(commands, kept, known[BUFFERS][i].key, offset);
            add(dispatch, kept);
        }
    }
}

/* Dynamic offsets are ordered by binding, then by element. */
static uint32_t dynamic_offset(const Set *set, const uint32_t *offsets, const Descriptor *descriptor) {
    uint32_t before = 0;
    if (descriptor->kind < UNIFORM_BUFFER_DYNAMIC || descriptor->kind > STORAGE_BUFFER_DYNAMIC || !set->layout || !offsets) return 0;
    for (uint32_t i = 0; i < set->layout->count; i++) {
        const LayoutBinding *binding = &set->layout->bindings[i];
        if (binding->binding < descriptor->binding && binding->type >= UNIFORM_BUFFER_DYNAMIC && binding->type <= STORAGE_BUFFER_DYNAMIC)
            before += binding->count;
    }
    return offsets[before + descriptor->element];
}

static bool wanted(void) {
    static unsigned count;
    unsigned first = 1, last = 16;
    const char *range = getenv("VK_LITMUS_CAPTURE_DISPATCHES");
    if (range && sscanf(range, "%u-%u", &first, &last) == 1) last = first;
    count++;
    return getenv("VK_LITMUS_CAPTURE") && count >= first && count <= last;
}

/* Called before a dispatch is recorded. */
static void capture(Handle handle, const uint32_t grid[3], uint64_t indirect, uint64_t indirect_offset, const char *note) {
    pthread_mutex_lock(&lock);
    Commands *commands = find(COMMANDS, (uintptr_t)handle);
    if (!commands || !commands->pipeline || !wanted()) {
        pthread_mutex_unlock(&lock);
        return;
    }
    Dispatch *dispatch = room(sizeof *dispatch);
    dispatch->pipeline = commands->pipeline;
    if (note) dispatch->notes = with(NULL, "# %s\n", note);
    if (grid) memcpy(dispatch->grid, grid, sizeof dispatch->grid);
    memcpy(dispatch->push, commands->push, sizeof dispatch->push);
    memcpy(dispatch->pushed, commands->pushed, sizeof dispatch->pushed);
    typedef void (*Barrier)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
    Barrier barriers = (Barrier)below(handle, "vkCmdPipelineBarrier");
    MemoryBarrier before = { 46, NULL, 0x10000, 0x800 }, after = { 46, NULL, 0x1000, 0x2000 };
    barriers(handle, 0x10000, 0x1000, 0, 1, &before, 0, NULL, 0, NULL);
    if (!grid && (dispatch->indirect = kept_of(handle, 12))) copy_buffer(handle, dispatch->indirect, indirect, indirect_offset);
    for (uint32_t number = 0; number < SETS; number++) {
        const Set *set = commands->sets[number];
        for (uint32_t i = 0; set && i < set->count; i++) {
            const Descriptor *descriptor = &set->descriptors[i];
            if (descriptor->element > 0 || descriptor->kind < 0) {
                dispatch->notes = with(dispatch->notes, "# element %u of %u.%u: not kept, a case has one\n", descriptor->element, number, descriptor->binding);
                continue;
            }
            if (descriptor->kind == SAMPLER || descriptor->kind == IMAGE_AND_SAMPLER) add_sampler(dispatch, number, descriptor);
            if (descriptor->kind >= IMAGE_AND_SAMPLER && descriptor->kind <= STORAGE_IMAGE) add_image(handle, dispatch, number, descriptor);
            if (descriptor->kind == UNIFORM_TEXELS || descriptor->kind == STORAGE_TEXELS || descriptor->kind > STORAGE_BUFFER_DYNAMIC)
                dispatch->notes = with(dispatch->notes, "# descriptor %u.%u of type %d: not kept\n", number, descriptor->binding, descriptor->kind);
            if (descriptor->kind >= UNIFORM_BUFFER && descriptor->kind <= STORAGE_BUFFER_DYNAMIC)
                add_buffer(handle, dispatch, number, descriptor, dynamic_offset(set, commands->offsets[number], descriptor));
        }
    }
    add_addresses(handle, dispatch);
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
    for (unsigned at = 0; at + 4 <= PUSHED; at += 4) {
        uint32_t word;
        memcpy(&word, dispatch->push + at, sizeof word);
        if (dispatch->pushed[at]) fprintf(toml, " { offset = %u, u32 = [%u] },", at, word);
    }
    fprintf(toml, " ]\n");
    for (const Kept *kept = dispatch->kept; kept; kept = kept->next) {
        fprintf(toml, "%s\n%s", kept->table, kept->lines ? kept->lines : "");
        if (!kept->file[0]) continue;
        fprintf(toml, "file = \"%s\"\n", kept->file);
        snprintf(end, 128, "/%s", kept->file);
        file = fopen(path, "wb");
        if (!file) continue;
        if (kept->format) write_texels(file, kept);
        else fwrite(kept->pointer, 1, kept->size, file);
        fclose(file);
    }
    if (fclose(toml) != 0) fprintf(stderr, "capture: %s cannot be written\n", path);
}

/* Command buffers. */

static void give_back(Handle device, Kept *kept) {
    while (kept) {
        Kept *next = kept->next;
        if (kept->buffer) BELOW(device, void, vkDestroyBuffer, (Handle, uint64_t, const void *))(device, kept->buffer, NULL);
        if (kept->memory) BELOW(device, void, vkFreeMemory, (Handle, uint64_t, const void *))(device, kept->memory, NULL);
        free(kept->lines);
        free(kept);
        kept = next;
    }
}

static Result layer_vkBeginCommandBuffer(Handle handle, const void *info) {
    pthread_mutex_lock(&lock);
    Commands *commands = find(COMMANDS, (uintptr_t)handle);
    if (!commands) commands = keep(COMMANDS, (uintptr_t)handle, room(sizeof *commands));
    for (Dispatch *dispatch = commands->first; dispatch;) {
        Dispatch *next = dispatch->next;
        Handle device = devices[place_of(handle)].device;
        give_back(device, dispatch->kept);
        give_back(device, dispatch->indirect);
        free(dispatch->notes);
        free(dispatch);
        dispatch = next;
    }
    for (unsigned i = 0; i < SETS; i++) free(commands->offsets[i]);
    memset(commands, 0, sizeof *commands);
    commands->last = &commands->first;
    pthread_mutex_unlock(&lock);
    return BELOW(handle, Result, vkBeginCommandBuffer, (Handle, const void *))(handle, info);
}

enum { COMPUTE = 1 };

static void layer_vkCmdBindPipeline(Handle handle, int32_t point, uint64_t pipeline) {
    BELOW(handle, void, vkCmdBindPipeline, (Handle, int32_t, uint64_t))(handle, point, pipeline);
    pthread_mutex_lock(&lock);
    Commands *commands = find(COMMANDS, (uintptr_t)handle);
    if (commands && point == COMPUTE) commands->pipeline = find(PIPELINES, pipeline);
    pthread_mutex_unlock(&lock);
}

static void layer_vkCmdBindDescriptorSets(Handle handle, int32_t point, uint64_t layout, uint32_t first, uint32_t count,
                                          const uint64_t *sets, uint32_t offset_count, const uint32_t *offsets) {
    BELOW(handle, void, vkCmdBindDescriptorSets,
          (Handle, int32_t, uint64_t, uint32_t, uint32_t, const uint64_t *, uint32_t, const uint32_t *))(
        handle, point, layout, first, count, sets, offset_count, offsets);
    pthread_mutex_lock(&lock);
    Commands *commands = find(COMMANDS, (uintptr_t)handle);
    for (uint32_t i = 0; commands && point == COMPUTE && i < count && first + i < SETS; i++) {
        const Set *set = find(SETS_KNOWN, sets[i]);
        commands->sets[first + i] = set;
        uint32_t own = 0;
        for (uint32_t j = 0; set && set->layout && j < set->layout->count; j++) {
            int32_t type = set->layout->bindings[j].type;
            if (type == UNIFORM_BUFFER_DYNAMIC || type == STORAGE_BUFFER_DYNAMIC) own += set->layout->bindings[j].count;
        }
        free(commands->offsets[first + i]);
        if (own > offset_count) own = offset_count;
        commands->offsets[first + i] = own ? copied(offsets, own * sizeof *offsets) : NULL;
        offsets += own;
        offset_count -= own;
    }
    pthread_mutex_unlock(&lock);
}

static void layer_vkCmdPushConstants(Handle handle, uint64_t layout, uint32_t stages, uint32_t offset, uint32_t size, const void *values) {
    enum { COMPUTE_STAGE = 0x20 };
    BELOW(handle, void, vkCmdPushConstants, (Handle, uint64_t, uint32_t, uint32_t, uint32_t, const void *))(
        handle, layout, stages, offset, size, values);
    pthread_mutex_lock(&lock);
    Commands *commands = find(COMMANDS, (uintptr_t)handle);
    if (commands && stages & COMPUTE_STAGE && offset <= PUSHED && size <= PUSHED - offset) {
        memcpy(commands->push + offset, values, size);
        memset(commands->pushed + offset, 1, size);
    }
    pthread_mutex_unlock(&lock);
}

static void layer_vkCmdDispatch(Handle handle, uint32_t x, uint32_t y, uint32_t z) {
    capture(handle, (uint32_t[3]){ x, y, z }, 0, 0, NULL);
    BELOW(handle, void, vkCmdDispatch, (Handle, uint32_t, uint32_t, uint32_t))(handle, x, y, z);
}

static void layer_vkCmdDispatchIndirect(Handle handle, uint64_t buffer, uint64_t offset) {
    capture(handle, NULL, buffer, offset, NULL);
    BELOW(handle, void, vkCmdDispatchIndirect, (Handle, uint64_t, uint64_t))(handle, buffer, offset);
}

#define DISPATCH_BASE(name) \
    static void layer_##name(Handle handle, uint32_t a, uint32_t b, uint32_t c, uint32_t x, uint32_t y, uint32_t z) { \
        capture(handle, (uint32_t[3]){ x, y, z }, 0, 0, a | b | c ? "the first workgroup is not 0,0,0: not kept" : NULL); \
        BELOW(handle, void, name, (Handle, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t))(handle, a, b, c, x, y, z); \
    }
DISPATCH_BASE(vkCmdDispatchBase)
DISPATCH_BASE(vkCmdDispatchBaseKHR)

/* Writes the cases of a command buffer after its work has ended. */
static void write_all(Handle queue, Handle handle) {
    Commands *commands = find(COMMANDS, (uintptr_t)handle);
    if (!commands || !commands->first) return;
    if (BELOW(queue, Result, vkQueueWaitIdle, (Handle))(queue) != SUCCESS) return;
    for (const Dispatch *dispatch = commands->first; dispatch; dispatch = dispatch->next) write_dispatch(dispatch);
}

static Result layer_vkQueueSubmit(Handle queue, uint32_t count, const Submit *submits, uint64_t fence) {
    Result result = BELOW(queue, Result, vkQueueSubmit, (Handle, uint32_t, const Submit *, uint64_t))(queue, count, submits, fence);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; result == SUCCESS && i < count; i++)
        for (uint32_t j = 0; j < submits[i].command_count; j++) write_all(queue, submits[i].commands[j]);
    pthread_mutex_unlock(&lock);
    return result;
}

#define SUBMIT2(name) \
    static Result layer_##name(Handle queue, uint32_t count, const Submit2 *submits, uint64_t fence) { \
        Result result = BELOW(queue, Result, name, (Handle, uint32_t, const Submit2 *, uint64_t))(queue, count, submits, fence); \
        pthread_mutex_lock(&lock); \
        for (uint32_t i = 0; result == SUCCESS && i < count; i++) \
            for (uint32_t j = 0; j < submits[i].command_count; j++) write_all(queue, submits[i].commands[j].commands); \
        pthread_mutex_unlock(&lock); \
        return result; \
    }
SUBMIT2(vkQueueSubmit2)
SUBMIT2(vkQueueSubmit2KHR)

/* Entry points for the loader. */

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *made) {
    Result result = make_instance(info, allocator, made);
    if (result != SUCCESS) return result;
    OF_INSTANCE(memory_of, "vkGetPhysicalDeviceMemoryProperties");
    OF_INSTANCE(properties_of, "vkGetPhysicalDeviceProperties2");
    return result;
}

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *made) {
    Result result = make_device(physical, info, allocator, made);
    if (result == SUCCESS) physical_devices[place_of(*made)] = physical;
    return result;
}

static Function own(const char *name) {
    OWN_ALWAYS
    OWN(vkCreateShaderModule)
    OWN(vkCreateComputePipelines)
    OWN(vkCreateDescriptorSetLayout)
    OWN(vkAllocateDescriptorSets)
    OWN(vkUpdateDescriptorSets)
    OWN(vkCreateBuffer)
    OWN(vkDestroyBuffer)
    OWN(vkGetBufferDeviceAddress)
    OWN(vkGetBufferDeviceAddressKHR)
    OWN(vkGetBufferDeviceAddressEXT)
    OWN(vkCreateImage)
    OWN(vkCreateImageView)
    OWN(vkCreateSampler)
    OWN(vkBeginCommandBuffer)
    OWN(vkCmdBindPipeline)
    OWN(vkCmdBindDescriptorSets)
    OWN(vkCmdPushConstants)
    OWN(vkCmdDispatch)
    OWN(vkCmdDispatchIndirect)
    OWN(vkCmdDispatchBase)
    OWN(vkCmdDispatchBaseKHR)
    OWN(vkQueueSubmit)
    OWN(vkQueueSubmit2)
    OWN(vkQueueSubmit2KHR)
    return NULL;
}
