/* Common code of the layers: the parts of the loader's and Vulkan's ABI that they read, and the entry points of every layer. A layer
 * includes this file once and defines the functions that are only declared here. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t Result;
enum { SUCCESS = 0, TIME_IS_OVER = 2, OUT_OF_HOST_MEMORY = -1, OUT_OF_DEVICE_MEMORY = -2, INITIALIZATION_FAILED = -3, DEVICE_LOST = -4 };
enum { LOADER_INSTANCE_CREATE_INFO = 47, LOADER_DEVICE_CREATE_INFO = 48 };

/* A dispatchable handle points to a pointer that identifies its instance or device. */
typedef void *Handle;
typedef void (*Function)(void);
typedef Function (*GetProcAddr)(Handle, const char *);

typedef struct Header {
    int32_t type;
    const struct Header *next;
} Header;

typedef struct InstanceLink {
    struct InstanceLink *next;
    GetProcAddr get_instance, get_physical_device;
} InstanceLink;

typedef struct DeviceLink {
    struct DeviceLink *next;
    GetProcAddr get_instance, get_device;
} DeviceLink;

typedef struct LayerInfo {
    int32_t type;
    const void *next;
    int32_t function; /* 0: a link */
    void *link;
} LayerInfo;

typedef struct Negotiation {
    int32_t type;
    void *next;
    uint32_t version;
    GetProcAddr get_instance, get_device, get_physical_device;
} Negotiation;

/* The beginning of VkDeviceCreateInfo. */
typedef struct DeviceInfo {
    int32_t type;
    const void *next;
    uint32_t flags, queue_info_count;
    const void *queue_infos;
    uint32_t layer_count;
    const char *const *layers;
    uint32_t extension_count;
    const char *const *extensions;
    const void *features;
} DeviceInfo;

static LayerInfo *link_of(const void *info, int32_t type) {
    for (const Header *at = ((const Header *)info)->next; at; at = at->next)
        if (at->type == type && ((const LayerInfo *)at)->function == 0) return (LayerInfo *)at;
    return NULL;
}

/* The layers and drivers below. */

enum { DEVICES = 64 };
static GetProcAddr next_instance;
static Handle last_instance;
static struct { void *key; GetProcAddr get; Handle device; } devices[DEVICES];
static unsigned device_count;

/* Returns the index of a device for a handle of the device, a queue or a command buffer. */
static unsigned place_of(Handle handle) {
    for (unsigned i = 0; i < device_count; i++)
        if (devices[i].key == *(void **)handle) return i;
    abort();
}

static Function below(Handle handle, const char *name) {
    unsigned place = place_of(handle);
    return devices[place].get(devices[place].device, name);
}

static Result make_instance(const void *info, const void *allocator, Handle *made) {
    LayerInfo *chain = link_of(info, LOADER_INSTANCE_CREATE_INFO);
    if (!chain) return INITIALIZATION_FAILED;
    InstanceLink *link = chain->link;
    chain->link = link->next;
    next_instance = link->get_instance;
    Result result = ((Result(*)(const void *, const void *, Handle *))next_instance(NULL, "vkCreateInstance"))(
        info, allocator, made);
    if (result == SUCCESS) last_instance = *made;
    return result;
}

/* Look up functions of the instance while it is created: later the loader returns those of the topmost layer. */
#define OF_INSTANCE(function, name) *(Function *)&function = next_instance(last_instance, name)

static Result make_device(Handle physical, const DeviceInfo *info, const void *allocator, Handle *made) {
    LayerInfo *chain = link_of(info, LOADER_DEVICE_CREATE_INFO);
    if (!chain) return INITIALIZATION_FAILED;
    DeviceLink *link = chain->link;
    chain->link = link->next;
    Result result = ((Result(*)(Handle, const DeviceInfo *, const void *, Handle *))link->get_instance(
        last_instance, "vkCreateDevice"))(physical, info, allocator, made);
    if (result != SUCCESS) return result;
    /* A destroyed device may have had the same key. */
    unsigned place = 0;
    while (place < device_count && devices[place].key != *(void **)*made) place++;
    if (place == DEVICES) abort();
    if (place == device_count) device_count++;
    devices[place].key = *(void **)*made;
    devices[place].get = link->get_device;
    devices[place].device = *made;
    return SUCCESS;
}

/* Entry points for the loader. */

/* Returns the layer's function of this name, or NULL. */
static Function own(const char *name);

static Function layer_vkGetDeviceProcAddr(Handle device, const char *name) {
    Function found = own(name);
    Function next = below(device, name);
    /* If the driver lacks the function, so does the layer. */
    return found && next ? found : next;
}

static Function layer_vkGetInstanceProcAddr(Handle instance, const char *name) {
    Function found = own(name);
    if (found) return found;
    return next_instance ? next_instance(instance, name) : NULL;
}

/* An entry of `own`. */
#define OWN(call) \
    if (strcmp(name, #call) == 0) return (Function)layer_##call;
/* The entries of every layer. */
#define OWN_ALWAYS OWN(vkGetDeviceProcAddr) OWN(vkGetInstanceProcAddr) OWN(vkCreateInstance) OWN(vkCreateDevice)

__attribute__((visibility("default"))) Result vkNegotiateLoaderLayerInterfaceVersion(Negotiation *asked) {
    if (asked->version < 2) return INITIALIZATION_FAILED;
    asked->version = 2;
    asked->get_instance = layer_vkGetInstanceProcAddr;
    asked->get_device = layer_vkGetDeviceProcAddr;
    asked->get_physical_device = NULL;
    return SUCCESS;
}
