/* A Vulkan layer that adds a memory type of VK_AMD_device_coherent_memory, and one that the host has to flush. The validation layers above
 * it check that the program uses the first one only for tests that require it, and only with its feature enabled.
 *
 * The added types follow the driver's types. They are copies of the first type, with the flags device-coherent and device-uncached, and
 * without host-coherent; the memory itself is that of the first type. The
 * layer supports one device at a time. A test builds this file with `cc`. It is not shipped. It needs no Vulkan headers: this file and the
 * chain.h of the recording layer declare the structures that it reads. */

#include "../../harness/record/layer/chain.h"

#define EXTENSION "VK_AMD_device_coherent_memory"
enum { COHERENT_MEMORY_FEATURES = 1000229000 };
enum { HOST_COHERENT = 4, DEVICE_COHERENT = 0x40, DEVICE_UNCACHED = 0x80, MAX_TYPES = 32, ADDED_TYPES = 2, INCOMPLETE = 5 };

typedef struct Extension {
    char name[256];
    uint32_t version;
} Extension;

typedef struct DeviceCoherentMemoryFeatures {
    int32_t type;
    const void *next;
    uint32_t device_coherent_memory;
} DeviceCoherentMemoryFeatures;

/* VkPhysicalDeviceMemoryProperties. */
typedef struct MemoryProperties {
    uint32_t count;
    struct { uint32_t flags, heap; } types[MAX_TYPES];
    uint32_t heap_count;
    struct { uint64_t size; uint32_t flags; } heaps[16];
} MemoryProperties;

typedef struct MemoryProperties2 {
    int32_t type;
    void *next;
    MemoryProperties memory;
} MemoryProperties2;

typedef struct MemoryRequirements {
    uint64_t size, alignment;
    uint32_t types;
} MemoryRequirements;

typedef struct MemoryRequirements2 {
    int32_t type;
    void *next;
    MemoryRequirements requirements;
} MemoryRequirements2;

typedef struct MemoryAllocateInfo {
    int32_t type;
    const void *next;
    uint64_t size;
    uint32_t index;
} MemoryAllocateInfo;

/* Index of the first added type: the number of types of the driver. */
static uint32_t added_type;

static Result (*get_extensions)(Handle, const char *, uint32_t *, Extension *);
static void (*get_features)(Handle, Header *);
static void (*get_memory_properties)(Handle, MemoryProperties *);
static void (*get_memory_properties2)(Handle, MemoryProperties2 *);

#define CALL_DEVICE(result, name, ...) ((result(*)(__VA_ARGS__))next_function(device, name))

/* Properties and features. */

static Result layer_vkEnumerateDeviceExtensionProperties(Handle physical, const char *layer, uint32_t *count, Extension *found) {
    uint32_t capacity = *count;
    Result result = get_extensions(physical, layer, count, found);
    if (layer || result != SUCCESS) return result;
    if (found && *count == capacity) return INCOMPLETE;
    if (found) found[*count] = (Extension){ EXTENSION, 1 };
    ++*count;
    return SUCCESS;
}

static void layer_vkGetPhysicalDeviceFeatures2(Handle physical, Header *features) {
    get_features(physical, features);
    for (const Header *at = features->next; at; at = at->next)
        if (at->type == COHERENT_MEMORY_FEATURES) ((DeviceCoherentMemoryFeatures *)at)->device_coherent_memory = 1;
}

static void add_types(MemoryProperties *memory) {
    added_type = memory->count;
    if (added_type + ADDED_TYPES > MAX_TYPES) abort();
    for (uint32_t i = 0; i < ADDED_TYPES; i++) memory->types[memory->count++] = memory->types[0];
    memory->types[added_type].flags |= DEVICE_COHERENT | DEVICE_UNCACHED;
    memory->types[added_type + 1].flags &= ~(uint32_t)HOST_COHERENT;
}

static void layer_vkGetPhysicalDeviceMemoryProperties(Handle physical, MemoryProperties *memory) {
    get_memory_properties(physical, memory);
    add_types(memory);
}

static void layer_vkGetPhysicalDeviceMemoryProperties2(Handle physical, MemoryProperties2 *memory) {
    get_memory_properties2(physical, memory);
    add_types(&memory->memory);
}

/* Creation of devices. */

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *created) {
    Result result = create_instance(info, allocator, created);
    if (result != SUCCESS) return result;
    LOAD_INSTANCE_FUNCTION(get_extensions, "vkEnumerateDeviceExtensionProperties");
    LOAD_INSTANCE_FUNCTION(get_features, "vkGetPhysicalDeviceFeatures2");
    LOAD_INSTANCE_FUNCTION(get_memory_properties, "vkGetPhysicalDeviceMemoryProperties");
    LOAD_INSTANCE_FUNCTION(get_memory_properties2, "vkGetPhysicalDeviceMemoryProperties2");
    return result;
}

/* Do not request a feature that the driver does not have. */
static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    const char *extensions[256];
    DeviceInfo driver_info = *info;
    driver_info.extension_count = 0;
    driver_info.extensions = extensions;
    for (uint32_t i = 0; i < info->extension_count; i++) {
        if (strcmp(info->extensions[i], EXTENSION) == 0) continue;
        if (driver_info.extension_count == sizeof extensions / sizeof *extensions) abort();
        extensions[driver_info.extension_count++] = info->extensions[i];
    }
    /* The structure before that of the feature. The chain of the caller is restored after the call. */
    Header *previous = (Header *)&driver_info;
    while (previous->next && previous->next->type != COHERENT_MEMORY_FEATURES) previous = (Header *)previous->next;
    const Header *feature = previous->next;
    if (feature) previous->next = feature->next;
    Result result = create_device(physical, &driver_info, allocator, created);
    if (feature) previous->next = feature;
    if (result != SUCCESS) return result;
    MemoryProperties memory;
    layer_vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    return SUCCESS;
}

/* Calls with a memory type as parameter. */

static void allow_added_types(MemoryRequirements *requirements) {
    if (requirements->types & 1) requirements->types |= (((uint32_t)1 << ADDED_TYPES) - 1) << added_type;
}

#define REQUIREMENTS(name) \
    static void layer_##name(Handle device, uint64_t object, MemoryRequirements *found) { \
        CALL_DEVICE(void, #name, Handle, uint64_t, MemoryRequirements *)(device, object, found); \
        allow_added_types(found); \
    }
#define REQUIREMENTS2(name) \
    static void layer_##name(Handle device, const void *info, MemoryRequirements2 *found) { \
        CALL_DEVICE(void, #name, Handle, const void *, MemoryRequirements2 *)(device, info, found); \
        allow_added_types(&found->requirements); \
    }
REQUIREMENTS(vkGetBufferMemoryRequirements)
REQUIREMENTS(vkGetImageMemoryRequirements)
REQUIREMENTS2(vkGetBufferMemoryRequirements2)
REQUIREMENTS2(vkGetImageMemoryRequirements2)

static Result layer_vkAllocateMemory(Handle device, const MemoryAllocateInfo *info, const void *allocator, uint64_t *created) {
    MemoryAllocateInfo driver_info = *info;
    if (driver_info.index >= added_type) driver_info.index = 0;
    return CALL_DEVICE(Result, "vkAllocateMemory", Handle, const MemoryAllocateInfo *, const void *, uint64_t *)(
        device, &driver_info, allocator, created);
}

static Function find_layer_function(const char *name) {
    COMMON_LAYER_FUNCTIONS
    LAYER_FUNCTION(vkEnumerateDeviceExtensionProperties)
    LAYER_FUNCTION(vkGetPhysicalDeviceFeatures2)
    LAYER_FUNCTION(vkGetPhysicalDeviceMemoryProperties)
    LAYER_FUNCTION(vkGetPhysicalDeviceMemoryProperties2)
    LAYER_FUNCTION(vkGetBufferMemoryRequirements)
    LAYER_FUNCTION(vkGetImageMemoryRequirements)
    LAYER_FUNCTION(vkGetBufferMemoryRequirements2)
    LAYER_FUNCTION(vkGetImageMemoryRequirements2)
    LAYER_FUNCTION(vkAllocateMemory)
    return NULL;
}
