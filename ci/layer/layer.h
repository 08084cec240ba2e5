/* Common code of the layers: the parts of the loader's and Vulkan's ABI that they read, and the entry points of every layer. A layer
 * includes this file once and defines the functions that are only declared here. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t Result;
enum { SUCCESS = 0, TIMEOUT = 2, OUT_OF_HOST_MEMORY = -1, OUT_OF_DEVICE_MEMORY = -2, INITIALIZATION_FAILED = -3, DEVICE_LOST = -4 };
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
    GetProcAddr get_instance_proc_addr, get_physical_device_proc_addr;
} InstanceLink;

typedef struct DeviceLink {
    struct DeviceLink *next;
    GetProcAddr get_instance_proc_addr, get_device_proc_addr;
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
    GetProcAddr get_instance_proc_addr, get_device_proc_addr, get_physical_device_proc_addr;
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

static LayerInfo *find_layer_link(const void *info, int32_t type) {
    for (const Header *at = ((const Header *)info)->next; at; at = at->next)
        if (at->type == type && ((const LayerInfo *)at)->function == 0) return (LayerInfo *)at;
    return NULL;
}

/* The layers and drivers below. */

enum { MAX_DEVICES = 64 };
static GetProcAddr next_instance_proc_addr;
static Handle last_instance;
static struct { void *key; GetProcAddr get; Handle device; } devices[MAX_DEVICES];
static unsigned device_count;

/* Returns the index of a device for a handle of the device, a queue or a command buffer. */
static unsigned device_index(Handle handle) {
    for (unsigned i = 0; i < device_count; i++)
        if (devices[i].key == *(void **)handle) return i;
    abort();
}

static Function next_function(Handle handle, const char *name) {
    unsigned index = device_index(handle);
    return devices[index].get(devices[index].device, name);
}

static Result create_instance(const void *info, const void *allocator, Handle *created) {
    LayerInfo *chain = find_layer_link(info, LOADER_INSTANCE_CREATE_INFO);
    if (!chain) return INITIALIZATION_FAILED;
    InstanceLink *link = chain->link;
    chain->link = link->next;
    next_instance_proc_addr = link->get_instance_proc_addr;
    Result result = ((Result(*)(const void *, const void *, Handle *))next_instance_proc_addr(NULL, "vkCreateInstance"))(
        info, allocator, created);
    if (result == SUCCESS) last_instance = *created;
    return result;
}

/* Look up functions of the instance while it is created: later the loader returns those of the topmost layer. */
#define LOAD_INSTANCE_FUNCTION(function, name) *(Function *)&function = next_instance_proc_addr(last_instance, name)

static Result create_device(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    LayerInfo *chain = find_layer_link(info, LOADER_DEVICE_CREATE_INFO);
    if (!chain) return INITIALIZATION_FAILED;
    DeviceLink *link = chain->link;
    chain->link = link->next;
    Result result = ((Result(*)(Handle, const DeviceInfo *, const void *, Handle *))link->get_instance_proc_addr(
        last_instance, "vkCreateDevice"))(physical, info, allocator, created);
    if (result != SUCCESS) return result;
    /* A destroyed device may have had the same key. */
    unsigned index = 0;
    while (index < device_count && devices[index].key != *(void **)*created) index++;
    if (index == MAX_DEVICES) abort();
    if (index == device_count) device_count++;
    devices[index].key = *(void **)*created;
    devices[index].get = link->get_device_proc_addr;
    devices[index].device = *created;
    return SUCCESS;
}

/* Entry points for the loader. */

/* Returns the layer's function of this name, or NULL. */
static Function find_layer_function(const char *name);

static Function layer_vkGetDeviceProcAddr(Handle device, const char *name) {
    Function found = find_layer_function(name);
    Function next = next_function(device, name);
    /* If the driver lacks the function, so does the layer. */
    return found && next ? found : next;
}

static Function layer_vkGetInstanceProcAddr(Handle instance, const char *name) {
    Function found = find_layer_function(name);
    if (found) return found;
    return next_instance_proc_addr ? next_instance_proc_addr(instance, name) : NULL;
}

/* An entry of `find_layer_function`. */
#define LAYER_FUNCTION(call) \
    if (strcmp(name, #call) == 0) return (Function)layer_##call;
/* The entries that every layer has. */
#define COMMON_LAYER_FUNCTIONS LAYER_FUNCTION(vkGetDeviceProcAddr) LAYER_FUNCTION(vkGetInstanceProcAddr) LAYER_FUNCTION(vkCreateInstance) LAYER_FUNCTION(vkCreateDevice)

__attribute__((visibility("default"))) Result vkNegotiateLoaderLayerInterfaceVersion(Negotiation *interface) {
    if (interface->version < 2) return INITIALIZATION_FAILED;
    interface->version = 2;
    interface->get_instance_proc_addr = layer_vkGetInstanceProcAddr;
    interface->get_device_proc_addr = layer_vkGetDeviceProcAddr;
    interface->get_physical_device_proc_addr = NULL;
    return SUCCESS;
}
