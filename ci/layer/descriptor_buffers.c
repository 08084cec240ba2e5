/* A Vulkan layer that answers the calls of VK_EXT_descriptor_buffer on a driver without it. Dispatches do nothing: a test compares what the
 * recording layer above it writes. A descriptor has 16 bytes: its kind, and the address or the view.
 *
 * A test builds this file with `cc`. It is not shipped. It needs no Vulkan headers: chain.h declares the structures that it reads. */

#define _POSIX_C_SOURCE 200809L
#define LAYER_PROVIDES_FUNCTIONS

#include <stdbool.h>

#include "../../harness/record/layer/chain.h"

enum { DESCRIPTOR_BYTES = 16, MAX_LAYOUTS = 64, MAX_BINDINGS = 16 };

typedef struct Binding {
    uint32_t binding;
    int32_t type;
    uint32_t count, stages;
    const uint64_t *samplers;
} Binding;

typedef struct LayoutInfo {
    int32_t type;
    const void *next;
    uint32_t flags, count;
    const Binding *bindings;
} LayoutInfo;

typedef struct BufferInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t size;
    uint32_t usage, sharing, family_count;
    const uint32_t *families;
} BufferInfo;

/* VkComputePipelineCreateInfo. */
typedef struct PipelineInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    uint64_t stage[6], layout, base;
    int32_t base_index;
} PipelineInfo;

typedef struct DescriptorInfo {
    int32_t type;
    const void *next;
    int32_t kind;
    const uint64_t *data;
} DescriptorInfo;

static struct { uint64_t handle; uint32_t count; Binding bindings[MAX_BINDINGS]; } layouts[MAX_LAYOUTS];
static unsigned layout_count;

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *created) { return create_instance(info, allocator, created); }

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    DeviceInfo driver_info = *info;
    const char *names[64];
    driver_info.extension_count = 0;
    driver_info.extensions = names;
    for (uint32_t i = 0; i < info->extension_count && i < 64; i++)
        if (strcmp(info->extensions[i], "VK_EXT_descriptor_buffer") != 0) names[driver_info.extension_count++] = info->extensions[i];
    return create_device(physical, &driver_info, allocator, created);
}

static Result layer_vkCreateBuffer(Handle device, const BufferInfo *info, const void *allocator, uint64_t *created) {
    enum { DESCRIPTOR_BUFFERS = 0x600000 };
    BufferInfo driver_info = *info;
    driver_info.usage &= ~(uint32_t)DESCRIPTOR_BUFFERS;
    return CALL_NEXT(device, Result, vkCreateBuffer, (Handle, const BufferInfo *, const void *, uint64_t *))(device, &driver_info, allocator, created);
}

static Result layer_vkCreateDescriptorSetLayout(Handle device, const LayoutInfo *info, const void *allocator, uint64_t *created) {
    enum { DESCRIPTOR_BUFFER = 0x10 };
    LayoutInfo driver_info = *info;
    driver_info.flags &= ~(uint32_t)DESCRIPTOR_BUFFER;
    Result result = CALL_NEXT(device, Result, vkCreateDescriptorSetLayout, (Handle, const LayoutInfo *, const void *, uint64_t *))(
        device, &driver_info, allocator, created);
    if (result != SUCCESS || layout_count == MAX_LAYOUTS || info->count > MAX_BINDINGS) return result;
    layouts[layout_count].handle = *created;
    layouts[layout_count].count = info->count;
    memcpy(layouts[layout_count++].bindings, info->bindings, info->count * sizeof *info->bindings);
    return result;
}

static Result layer_vkCreateComputePipelines(
    Handle device, uint64_t cache, uint32_t count, const PipelineInfo *infos, const void *allocator, uint64_t *created) {
    enum { DESCRIPTOR_BUFFER = 0x20000000 };
    PipelineInfo *driver_infos = malloc(count * sizeof *infos);
    if (!driver_infos) return OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        driver_infos[i] = infos[i];
        driver_infos[i].flags &= ~(uint32_t)DESCRIPTOR_BUFFER;
    }
    Result result = CALL_NEXT(device, Result, vkCreateComputePipelines, (Handle, uint64_t, uint32_t, const PipelineInfo *, const void *, uint64_t *))(
        device, cache, count, driver_infos, allocator, created);
    free(driver_infos);
    return result;
}

/* Returns the bytes before a binding, or of the whole layout. */
static uint64_t bytes_before(uint64_t handle, uint32_t binding) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < layout_count; i++)
        for (uint32_t j = 0; layouts[i].handle == handle && j < layouts[i].count; j++)
            if (layouts[i].bindings[j].binding < binding) bytes += (uint64_t)layouts[i].bindings[j].count * DESCRIPTOR_BYTES;
    return bytes;
}

static void layer_vkGetDescriptorSetLayoutSizeEXT(Handle device, uint64_t layout, uint64_t *size) {
    (void)device;
    *size = bytes_before(layout, ~0u);
}

static void layer_vkGetDescriptorSetLayoutBindingOffsetEXT(Handle device, uint64_t layout, uint32_t binding, uint64_t *offset) {
    (void)device;
    *offset = bytes_before(layout, binding);
}

static void layer_vkGetDescriptorEXT(Handle device, const DescriptorInfo *info, size_t size, void *bytes) {
    enum { FIRST_BUFFER = 4, LAST_BUFFER = 7 };
    (void)device;
    /* The address is the third word of VkDescriptorAddressInfoEXT, the view the second one of VkDescriptorImageInfo. */
    bool is_buffer = info->kind >= FIRST_BUFFER && info->kind <= LAST_BUFFER;
    uint64_t words[2] = { (uint64_t)info->kind + 1, info->data[is_buffer ? 2 : info->kind ? 1 : 0] };
    memcpy(bytes, words, size < sizeof words ? size : sizeof words);
}

static void layer_vkCmdBindDescriptorBuffersEXT(Handle commands, uint32_t count, const void *infos) { (void)commands, (void)count, (void)infos; }

static void layer_vkCmdSetDescriptorBufferOffsetsEXT(Handle commands, int32_t point, uint64_t layout, uint32_t first, uint32_t count,
                                                     const uint32_t *indices, const uint64_t *offsets) {
    (void)commands, (void)point, (void)layout, (void)first, (void)count, (void)indices, (void)offsets;
}

static void layer_vkCmdDispatch(Handle commands, uint32_t x, uint32_t y, uint32_t z) { (void)commands, (void)x, (void)y, (void)z; }

static Function find_layer_function(const char *name) {
    COMMON_LAYER_FUNCTIONS
    LAYER_FUNCTION(vkCreateBuffer)
    LAYER_FUNCTION(vkCreateDescriptorSetLayout)
    LAYER_FUNCTION(vkCreateComputePipelines)
    LAYER_FUNCTION(vkGetDescriptorSetLayoutSizeEXT)
    LAYER_FUNCTION(vkGetDescriptorSetLayoutBindingOffsetEXT)
    LAYER_FUNCTION(vkGetDescriptorEXT)
    LAYER_FUNCTION(vkCmdBindDescriptorBuffersEXT)
    LAYER_FUNCTION(vkCmdSetDescriptorBufferOffsetsEXT)
    LAYER_FUNCTION(vkCmdDispatch)
    return NULL;
}
