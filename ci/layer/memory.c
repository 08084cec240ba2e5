/* A Vulkan layer that adds a memory type of VK_AMD_device_coherent_memory. The validation layers above it check that the program
 * uses the type only for tests that require it, and only with its feature enabled.
 *
 * The added type follows the driver's types. It is a copy of the first type with the flags device-coherent and device-uncached. The
 * layer supports one device at a time. A test builds this file with `cc`. It is not shipped. It needs no Vulkan headers: this file and
 * layer.h declare the structures that it reads. */

#include "layer.h"

#define EXTENSION "VK_AMD_device_coherent_memory"
enum { COHERENT_MEMORY_FEATURES = 1000229000 };
enum { DEVICE_COHERENT = 0x40, DEVICE_UNCACHED = 0x80, TYPES = 32, INCOMPLETE = 5 };

typedef struct Extension {
    char name[256];
    uint32_t version;
} Extension;

typedef struct Features {
    int32_t type;
    const void *next;
    uint32_t device_coherent_memory;
} Features;

/* VkPhysicalDeviceMemoryProperties. */
typedef struct Memory {
    uint32_t count;
    struct { uint32_t flags, heap; } types[TYPES];
    uint32_t heap_count;
    struct { uint64_t size; uint32_t flags; } heaps[16];
} Memory;

typedef struct Memory2 {
    int32_t type;
    void *next;
    Memory memory;
} Memory2;

typedef struct Requirements {
    uint64_t size, alignment;
    uint32_t types;
} Requirements;

typedef struct Requirements2 {
    int32_t type;
    void *next;
    Requirements requirements;
} Requirements2;

typedef struct AllocateInfo {
    int32_t type;
    const void *next;
    uint64_t size;
    uint32_t index;
} AllocateInfo;

/* Index of the added type: the number of types of the driver. */
static uint32_t ours;

static Result (*extensions_of)(Handle, const char *, uint32_t *, Extension *);
static void (*features_of)(Handle, Header *);
static void (*memory_of)(Handle, Memory *);
static void (*memory2_of)(Handle, Memory2 *);

#define BELOW_DEVICE(result, name, ...) ((result(*)(__VA_ARGS__))below(device, name))

/* Properties and features. */

static Result layer_vkEnumerateDeviceExtensionProperties(Handle physical, const char *layer, uint32_t *count, Extension *found) {
    uint32_t room = *count;
    Result result = extensions_of(physical, layer, count, found);
    if (layer || result != SUCCESS) return result;
    if (found && *count == room) return INCOMPLETE;
    if (found) found[*count] = (Extension){ EXTENSION, 1 };
    ++*count;
    return SUCCESS;
}

static void layer_vkGetPhysicalDeviceFeatures2(Handle physical, Header *features) {
    features_of(physical, features);
    for (const Header *at = features->next; at; at = at->next)
        if (at->type == COHERENT_MEMORY_FEATURES) ((Features *)at)->device_coherent_memory = 1;
}

static void add_type(Memory *memory) {
    ours = memory->count;
    if (ours == TYPES) abort();
    memory->types[ours] = memory->types[0];
    memory->types[ours].flags |= DEVICE_COHERENT | DEVICE_UNCACHED;
    memory->count++;
}

static void layer_vkGetPhysicalDeviceMemoryProperties(Handle physical, Memory *memory) {
    memory_of(physical, memory);
    add_type(memory);
}

static void layer_vkGetPhysicalDeviceMemoryProperties2(Handle physical, Memory2 *memory) {
    memory2_of(physical, memory);
    add_type(&memory->memory);
}

/* Creation of devices. */

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *made) {
    Result result = make_instance(info, allocator, made);
    if (result != SUCCESS) return result;
    OF_INSTANCE(extensions_of, "vkEnumerateDeviceExtensionProperties");
    OF_INSTANCE(features_of, "vkGetPhysicalDeviceFeatures2");
    OF_INSTANCE(memory_of, "vkGetPhysicalDeviceMemoryProperties");
    OF_INSTANCE(memory2_of, "vkGetPhysicalDeviceMemoryProperties2");
    return result;
}

/* Do not request a feature that the driver does not have. */
static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *made) {
    const char *kept[256];
    DeviceInfo own = *info;
    own.extension_count = 0;
    own.extensions = kept;
    for (uint32_t i = 0; i < info->extension_count; i++) {
        if (strcmp(info->extensions[i], EXTENSION) == 0) continue;
        if (own.extension_count == sizeof kept / sizeof *kept) abort();
        kept[own.extension_count++] = info->extensions[i];
    }
    /* The structure before that of the feature. The chain of the caller is restored after the call. */
    Header *before = (Header *)&own;
    while (before->next && before->next->type != COHERENT_MEMORY_FEATURES) before = (Header *)before->next;
    const Header *feature = before->next;
    if (feature) before->next = feature->next;
    Result result = make_device(physical, &own, allocator, made);
    if (feature) before->next = feature;
    if (result != SUCCESS) return result;
    Memory memory;
    layer_vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    return SUCCESS;
}

/* Calls with a memory type as parameter. */

static void with_ours(Requirements *requirements) {
    if (requirements->types & 1) requirements->types |= (uint32_t)1 << ours;
}

#define REQUIREMENTS(name) \
    static void layer_##name(Handle device, uint64_t object, Requirements *found) { \
        BELOW_DEVICE(void, #name, Handle, uint64_t, Requirements *)(device, object, found); \
        with_ours(found); \
    }
#define REQUIREMENTS2(name) \
    static void layer_##name(Handle device, const void *info, Requirements2 *found) { \
        BELOW_DEVICE(void, #name, Handle, const void *, Requirements2 *)(device, info, found); \
        with_ours(&found->requirements); \
    }
REQUIREMENTS(vkGetBufferMemoryRequirements)
REQUIREMENTS(vkGetImageMemoryRequirements)
REQUIREMENTS2(vkGetBufferMemoryRequirements2)
REQUIREMENTS2(vkGetImageMemoryRequirements2)

static Result layer_vkAllocateMemory(Handle device, const AllocateInfo *info, const void *allocator, uint64_t *made) {
    AllocateInfo own = *info;
    if (own.index == ours) own.index = 0;
    return BELOW_DEVICE(Result, "vkAllocateMemory", Handle, const AllocateInfo *, const void *, uint64_t *)(
        device, &own, allocator, made);
}

static Function own(const char *name) {
    OWN_ALWAYS
    OWN(vkEnumerateDeviceExtensionProperties)
    OWN(vkGetPhysicalDeviceFeatures2)
    OWN(vkGetPhysicalDeviceMemoryProperties)
    OWN(vkGetPhysicalDeviceMemoryProperties2)
    OWN(vkGetBufferMemoryRequirements)
    OWN(vkGetImageMemoryRequirements)
    OWN(vkGetBufferMemoryRequirements2)
    OWN(vkGetImageMemoryRequirements2)
    OWN(vkAllocateMemory)
    return NULL;
}
