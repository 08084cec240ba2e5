/* What layers know of the ABI of the loader and of Vulkan: the few structures that are looked into, without Vulkan's headers. */

#include <stddef.h>
#include <stdint.h>

typedef int32_t Result;
enum { SUCCESS = 0, OUT_OF_HOST_MEMORY = -1, OUT_OF_DEVICE_MEMORY = -2, INITIALIZATION_FAILED = -3, DEVICE_LOST = -4 };
enum { LOADER_INSTANCE_CREATE_INFO = 47, LOADER_DEVICE_CREATE_INFO = 48 };

/* Dispatchable handles point at a pointer that tells instances and devices apart. */
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

static LayerInfo *link_of(const void *info, int32_t type) {
    for (const Header *at = ((const Header *)info)->next; at; at = at->next)
        if (at->type == type && ((const LayerInfo *)at)->function == 0) return (LayerInfo *)at;
    return NULL;
}
