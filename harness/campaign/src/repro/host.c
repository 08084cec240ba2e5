/* Runs the kernels in this folder on a Vulkan device, many times, and counts outcomes.
 *
 *     cc -O2 -o host host.c -lvulkan && ./host
 *
 * in this folder; it needs a C compiler and the headers and the loader of Vulkan (Debian: libvulkan-dev), only.
 *
 *     ./host [SECONDS [DEVICE [SEED]]]       10 seconds, the first device that is not a CPU, seed 1
 *
 * Exit code: 0 no forbidden outcome, 1 a forbidden outcome, 3 the device or the loader failed.
 *
 * Each dispatch runs `groups * rounds * LANES` instances of the test. An instance has its own locations, so that every row of
 * the table is one run of the test. The push constants, drawn for each dispatch, place the threads. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

/* ---- the test ---- */
@TEST@/* ---- end of the test ---- */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define POISON 0xa7c53d91u
#define DONE 0x600d600du
/* Some drivers end loops of a kernel silently after 65,535 iterations. */
#define LOOP_BUDGET 60000u
#define LOCATION_WORDS (4u << 20)
#define RESULT_WORDS (2u << 20)
#define MOST_ROWS 1024
#define NAME_BYTES 1024

/* The push constants of the kernels, in their order. */
struct parameters {
    uint32_t groups, rounds, spin, pairing, group_multiplier, group_offset, lane_multiplier, lane_offset;
    uint32_t stride, spacing, poison, done, interval, hold, turn, party;
};

static void fail(const char *what, long code) {
    fprintf(stderr, "host: %s (%ld)\n", what, code);
    exit(3);
}

static void check(VkResult result, const char *what) {
    if (result != VK_SUCCESS) fail(what, result);
}

/* ---- random numbers ---- */

static uint64_t state;

static uint32_t random_below(uint32_t count) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * count >> 32);
}

static uint32_t random_in_range(const uint32_t range[2]) {
    return range[0] + random_below(range[1] - range[0] + 1);
}

static uint32_t common_factor(uint32_t a, uint32_t b) {
    return b == 0 ? a : common_factor(b, a % b);
}

static uint32_t random_coprime(uint32_t count) {
    uint32_t candidate = 1;
    if (count <= 2) return 1;
    do candidate = 1 + random_below(count - 1);
    while (common_factor(candidate, count) != 1);
    return candidate;
}

static void draw_order(struct parameters *p) {
    p->pairing = 1;
    if (random_below(2)) p->pairing = p->groups;
    p->group_multiplier = random_coprime(p->groups);
    p->group_offset = random_below(p->groups);
    p->lane_multiplier = random_coprime(LANES);
    p->lane_offset = random_below(LANES);
}

/* Iterations that a kernel spends at most. */
static uint64_t loop_iterations(const struct parameters *p) {
    uint64_t meetings = (p->rounds + p->interval - 1) / p->interval;
    return (uint64_t)p->rounds * (1 + LOOP_TURNS) + meetings * (2 + p->hold) + 2 * (uint64_t)p->spin;
}

static struct parameters draw_parameters(uint32_t party) {
    struct parameters p = {0};
    p.groups = random_in_range(groups_range);
    while ((uint64_t)p.groups * LANES * STORAGES * STORAGE_WORDS > LOCATION_WORDS || (uint64_t)p.groups * LANES * SLOTS > RESULT_WORDS)
        p.groups = (p.groups + 1) / 2;
    p.rounds = random_in_range(rounds_range);
    p.spin = party > 1 ? random_in_range(spin_range) : 0;
    p.interval = random_in_range(interval_range);
    p.hold = random_in_range(hold_range);
    p.spacing = random_in_range(spacing_range);
    while (p.spacing > 1 && (uint64_t)p.groups * LANES * STORAGES * STORAGE_WORDS * p.spacing > LOCATION_WORDS) p.spacing /= 2;
    p.stride = STORAGES * p.spacing;
    while (p.rounds > 1 &&
           ((uint64_t)p.groups * p.rounds * LANES * p.stride * STORAGE_WORDS > LOCATION_WORDS ||
            (uint64_t)p.groups * p.rounds * LANES * SLOTS > RESULT_WORDS || loop_iterations(&p) > LOOP_BUDGET))
        p.rounds /= 2;
    p.poison = POISON;
    p.done = DONE;
    p.turn = random_below(12);
    p.party = party;
    draw_order(&p);
    return p;
}

/* ---- Vulkan ---- */

static VkPhysicalDevice physical;
static VkDevice device;
static uint32_t family;
/* A pipeline may require a subgroup size; a device with only one size needs no request. */
static int may_require;

static uint32_t memory_type(uint32_t bits, VkMemoryPropertyFlags wanted) {
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    for (uint32_t type = 0; type < memory.memoryTypeCount; ++type)
        if ((bits >> type & 1) && (memory.memoryTypes[type].propertyFlags & wanted) == wanted) return type;
    fail("no such memory", wanted);
    return 0;
}

struct buffer {
    VkBuffer handle;
    VkDeviceSize size;
    uint32_t *words; /* the mapped memory */
};

static struct buffer make_buffer(uint32_t words, int of_host) {
    struct buffer made = {.size = (VkDeviceSize)words * 4};
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = made.size;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    check(vkCreateBuffer(device, &info, NULL, &made.handle), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, made.handle, &needs);
    VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = memory_type(
        needs.memoryTypeBits, of_host ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
                                      : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    VkDeviceMemory memory;
    check(vkAllocateMemory(device, &allocate, NULL, &memory), "vkAllocateMemory");
    check(vkBindBufferMemory(device, made.handle, memory, 0), "vkBindBufferMemory");
    if (of_host) check(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&made.words), "vkMapMemory");
    return made;
}

static uint32_t *read_words(const char *name, size_t *bytes) {
    FILE *file = fopen(name, "rb");
    if (!file) {
        fprintf(stderr, "host: %s not found: start this program in its folder\n", name);
        exit(3);
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint32_t *words = malloc((size_t)size);
    if (!words || fread(words, 1, (size_t)size, file) != (size_t)size) fail(name, size);
    fclose(file);
    *bytes = (size_t)size;
    return words;
}

static void open_device(long wanted, char *name) {
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    VkInstance instance;
    check(vkCreateInstance(&info, NULL, &instance), "vkCreateInstance");
    VkPhysicalDevice all[16];
    uint32_t count = COUNT(all);
    VkResult listed = vkEnumeratePhysicalDevices(instance, &count, all);
    if (listed != VK_INCOMPLETE) check(listed, "vkEnumeratePhysicalDevices");
    if (count == 0) fail("no Vulkan device", 0);
    uint32_t chosen = 0;
    for (uint32_t number = count; number-- > 0;) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(all[number], &properties);
        if (properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) chosen = number;
    }
    if (wanted >= 0 && (uint32_t)wanted < count) chosen = (uint32_t)wanted;
    else if (wanted >= 0) fail("no device of that number", wanted);
    physical = all[chosen];

    VkPhysicalDeviceDriverProperties driver = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroups = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &driver};
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroups};
    vkGetPhysicalDeviceProperties2(physical, &properties);
    snprintf(name, NAME_BYTES, "%s (%s %s)", properties.properties.deviceName, driver.driverName, driver.driverInfo);
    int controlled = 0;
    for (uint32_t number = 0; number < KERNELS; ++number) controlled |= kernels[number].subgroup_size != 0 || kernels[number].varying;

    uint32_t families = 16;
    VkQueueFamilyProperties queues[16];
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &families, queues);
    for (family = 0; family < families && !(queues[family].queueFlags & VK_QUEUE_COMPUTE_BIT);) ++family;
    if (family == families) fail("no queue computes", 0);

    /* Devices without the extension have one size, and no property of full subgroups. */
    uint32_t extensions = 0;
    check(vkEnumerateDeviceExtensionProperties(physical, NULL, &extensions, NULL), "vkEnumerateDeviceExtensionProperties");
    VkExtensionProperties *known = calloc(extensions + 1, sizeof *known);
    if (!known) fail("no memory", extensions);
    check(vkEnumerateDeviceExtensionProperties(physical, NULL, &extensions, known), "vkEnumerateDeviceExtensionProperties");
    int control = properties.properties.apiVersion >= VK_API_VERSION_1_3;
    const char *extension = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
    int listed_control = 0;
    for (uint32_t number = 0; number < extensions; ++number) listed_control |= strcmp(known[number].extensionName, extension) == 0;
    free(known);
    VkPhysicalDeviceSubgroupSizeControlFeaturesEXT has_control = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
    VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
    if (controlled && (control || listed_control)) {
        VkPhysicalDeviceFeatures2 asked = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &has_control};
        vkGetPhysicalDeviceFeatures2(physical, &asked);
        VkPhysicalDeviceProperties2 told = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes};
        vkGetPhysicalDeviceProperties2(physical, &told);
    }
    for (uint32_t number = 0; number < KERNELS; ++number) {
        const struct kernel *kernel = &kernels[number];
        if ((kernel->subgroup_size != 0 || kernel->varying) && !has_control.subgroupSizeControl)
            fail("the device lacks subgroupSizeControl", 0);
        if (kernel->full && !has_control.computeFullSubgroups) fail("the device lacks computeFullSubgroups", 0);
        may_require = (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
        if (kernel->subgroup_size != 0 &&
            (kernel->subgroup_size < sizes.minSubgroupSize || kernel->subgroup_size > sizes.maxSubgroupSize ||
             !(may_require || sizes.minSubgroupSize == sizes.maxSubgroupSize)))
            fail("generate the kernels for this device by vk-litmus repro with --device NAME: it has no subgroups of size",
                 kernel->subgroup_size);
    }

    VkPhysicalDeviceVulkan12Features has12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features has11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &has12};
    VkPhysicalDeviceFeatures2 has10 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &has11};
    vkGetPhysicalDeviceFeatures2(physical, &has10);
    VkPhysicalDeviceVulkan12Features want12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features want11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &want12};
    VkPhysicalDeviceFeatures2 want10 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &want11};
#define IN_10(set) set##10.features
#define IN_11(set) set##11
#define IN_12(set) set##12
#define NEED(in, feature)                                           \
    if (!in(has).feature) fail("the device lacks " #feature, 0);    \
    in(want).feature = VK_TRUE;
    FEATURES(NEED)

    float priority = 1;
    VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo create = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &want10};
    if (has_control.subgroupSizeControl) {
        has_control.pNext = &want10;
        create.pNext = &has_control;
        create.enabledExtensionCount = (uint32_t)listed_control;
        create.ppEnabledExtensionNames = &extension;
    }
    create.queueCreateInfoCount = 1;
    create.pQueueCreateInfos = &queue;
    check(vkCreateDevice(physical, &create, NULL, &device), "vkCreateDevice");
}

static void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags available,
                    VkAccessFlags visible) {
    VkMemoryBarrier memory = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = available;
    memory.dstAccessMask = visible;
    vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

/* ---- counting ---- */

struct seen {
    uint32_t values[VALUES];
    uint64_t count;
};

static struct seen rows[MOST_ROWS];
static uint32_t row_count;
static uint64_t unresolved, lost_rows;

static void count_row(const uint32_t *row) {
    for (uint32_t known = 0; known < row_count; ++known)
        if (memcmp(rows[known].values, row, sizeof rows[known].values) == 0) {
            ++rows[known].count;
            return;
        }
    if (row_count == MOST_ROWS) {
        ++lost_rows;
        return;
    }
    memcpy(rows[row_count].values, row, sizeof rows[row_count].values);
    rows[row_count++].count = 1;
}

static uint32_t read_value(const struct value *value, uint32_t word) {
    if (value->is_float) {
        float number;
        memcpy(&number, &word, 4);
        return (uint32_t)(int32_t)number;
    }
    return word >> value->shift & value->mask;
}

/* Counts the instances of a dispatch; those of an incompletely executed one are omitted. */
static uint64_t count_dispatch(const struct parameters *p, uint32_t instances, const uint32_t *results, const uint32_t *locations) {
    for (uint64_t word = 0; word < (uint64_t)SLOTS * instances; ++word)
        if (results[word] == POISON) return instances;
    for (uint32_t instance = 0; instance < instances; ++instance) {
        uint32_t row[VALUES];
        int ended = 1;
        for (size_t slot = 0; slot < COUNT(done_slots); ++slot)
            if (done_slots[slot] >= 0 && results[(uint64_t)done_slots[slot] * instances + instance] != DONE) ended = 0;
        if (!ended) {
            ++unresolved;
            continue;
        }
        for (size_t number = 0; number < VALUES; ++number) {
            const struct value *value = &values[number];
            uint64_t unit = (uint64_t)instance * p->stride + (uint64_t)value->number * p->spacing;
            row[number] = read_value(value, value->in_memory ? locations[unit * STORAGE_WORDS + value->word]
                                                           : results[(uint64_t)value->number * instances + instance]);
        }
        count_row(row);
    }
    return 0;
}

static int compare_by_count(const void *a, const void *b) {
    uint64_t left = ((const struct seen *)a)->count, right = ((const struct seen *)b)->count;
    return left < right ? 1 : left > right ? -1 : 0;
}

static const char *verdict_of(const uint32_t *row) {
    for (size_t number = 0; number < COUNT(outcomes); ++number)
        if (memcmp(outcomes[number].values, row, sizeof outcomes[number].values) == 0) return outcomes[number].verdict;
    return JUDGED ? "forbidden: no execution has it" : "";
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    state = 0x9e3779b97f4a7c15u * (argc > 3 ? strtoull(argv[3], NULL, 0) | 1 : 1);
    char name[NAME_BYTES];
    open_device(argc > 2 ? atol(argv[2]) : -1, name);
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical, &properties);
    uint32_t party = CLASSES;
    if (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU && sysconf(_SC_NPROCESSORS_ONLN) < (long)party)
        party = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);

    struct buffer locations = make_buffer(LOCATION_WORDS, 0), results = make_buffer(RESULT_WORDS, 0);
    struct buffer initial = make_buffer(LOCATION_WORDS, 1), results_back = make_buffer(RESULT_WORDS, 1);
    struct buffer locations_back = make_buffer(LOCATION_WORDS, 1);
    struct buffer meeting = make_buffer(groups_range[1] * RENDEZVOUS_SPACING * PHASES, 0);

    VkDescriptorPoolSize room = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 16 * KERNELS};
    VkDescriptorPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool_info.maxSets = KERNELS;
    pool_info.poolSizeCount = 1;
    pool_info.pPoolSizes = &room;
    VkDescriptorPool descriptors;
    check(vkCreateDescriptorPool(device, &pool_info, NULL, &descriptors), "vkCreateDescriptorPool");
    VkPipeline pipelines[KERNELS];
    VkPipelineLayout layouts[KERNELS];
    VkDescriptorSet sets[KERNELS];
    for (uint32_t number = 0; number < KERNELS; ++number) {
        const struct kernel *kernel = &kernels[number];
        uint32_t bindings = (uint32_t)strlen(kernel->bindings);
        VkDescriptorSetLayoutBinding binding[16] = {{0}};
        for (uint32_t at = 0; at < bindings; ++at) {
            binding[at].binding = at;
            binding[at].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            binding[at].descriptorCount = 1;
            binding[at].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
        }
        VkDescriptorSetLayoutCreateInfo set_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
        set_info.bindingCount = bindings;
        set_info.pBindings = binding;
        VkDescriptorSetLayout set_layout;
        check(vkCreateDescriptorSetLayout(device, &set_info, NULL, &set_layout), "vkCreateDescriptorSetLayout");
        VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(struct parameters)};
        VkPipelineLayoutCreateInfo layout_info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
        layout_info.setLayoutCount = 1;
        layout_info.pSetLayouts = &set_layout;
        layout_info.pushConstantRangeCount = 1;
        layout_info.pPushConstantRanges = &push;
        check(vkCreatePipelineLayout(device, &layout_info, NULL, &layouts[number]), "vkCreatePipelineLayout");
        VkDescriptorSetAllocateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
        set.descriptorPool = descriptors;
        set.descriptorSetCount = 1;
        set.pSetLayouts = &set_layout;
        check(vkAllocateDescriptorSets(device, &set, &sets[number]), "vkAllocateDescriptorSets");
        VkDeviceSize part = (VkDeviceSize)groups_range[1] * RENDEZVOUS_SPACING * 4;
        for (uint32_t at = 0; at < bindings; ++at) {
            char kind = kernel->bindings[at];
            VkDescriptorBufferInfo shown = {kind == 'L' ? locations.handle : kind == 'R' ? results.handle : meeting.handle, 0, VK_WHOLE_SIZE};
            if (kind == 'M') {
                shown.offset = part * kernel->phase;
                shown.range = part;
            }
            VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
            write.dstSet = sets[number];
            write.dstBinding = at;
            write.descriptorCount = 1;
            write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            write.pBufferInfo = &shown;
            vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
        }
        VkShaderModuleCreateInfo module_info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
        uint32_t *words = read_words(kernel->file, &module_info.codeSize);
        module_info.pCode = words;
        VkShaderModule module;
        check(vkCreateShaderModule(device, &module_info, NULL, &module), "vkCreateShaderModule");
        VkComputePipelineCreateInfo pipeline = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
        pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
        pipeline.stage.module = module;
        pipeline.stage.pName = "main";
        VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT required = {
            VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT};
        required.requiredSubgroupSize = kernel->subgroup_size;
        if (kernel->subgroup_size != 0 && may_require) pipeline.stage.pNext = &required;
        if (kernel->full) pipeline.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
        if (kernel->varying) pipeline.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT_EXT;
        pipeline.layout = layouts[number];
        check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline, NULL, &pipelines[number]), "vkCreateComputePipelines");
        free(words);
    }

    VkQueue queue;
    vkGetDeviceQueue(device, family, 0, &queue);
    VkCommandPoolCreateInfo commands_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    commands_info.queueFamilyIndex = family;
    commands_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    VkCommandPool pool;
    check(vkCreateCommandPool(device, &commands_info, NULL, &pool), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo buffer_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    buffer_info.commandPool = pool;
    buffer_info.commandBufferCount = 1;
    VkCommandBuffer commands;
    check(vkAllocateCommandBuffers(device, &buffer_info, &commands), "vkAllocateCommandBuffers");
    VkFenceCreateInfo fence_info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;
    check(vkCreateFence(device, &fence_info, NULL, &fence), "vkCreateFence");

    printf("%s on %s\n", TEST, name);
    uint64_t instances = 0, not_executed = 0, dispatches = 0;
    uint32_t filled_stride = 0, filled_spacing = 0;
    double start = now();
    do {
        struct parameters p = draw_parameters(party);
        uint32_t played = p.groups * p.rounds * LANES;
        uint64_t used = (uint64_t)played * p.stride * STORAGE_WORDS;
        if (p.stride != filled_stride || p.spacing != filled_spacing) {
            memset(initial.words, 0, initial.size);
            for (uint64_t unit = 0; (unit + p.stride) * STORAGE_WORDS <= LOCATION_WORDS; unit += p.stride)
                for (uint32_t storage = 0; storage < STORAGES; ++storage)
                    memcpy(&initial.words[(unit + storage * p.spacing) * STORAGE_WORDS], &initial_values[storage * STORAGE_WORDS],
                           STORAGE_WORDS * 4);
            filled_stride = p.stride;
            filled_spacing = p.spacing;
        }
        VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
        VkBufferCopy to_device = {0, 0, used * 4};
        vkCmdCopyBuffer(commands, initial.handle, locations.handle, 1, &to_device);
        vkCmdFillBuffer(commands, results.handle, 0, VK_WHOLE_SIZE, POISON);
        vkCmdFillBuffer(commands, meeting.handle, 0, VK_WHOLE_SIZE, 0);
        barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
        for (uint32_t number = 0; number < KERNELS; ++number) {
            const struct kernel *kernel = &kernels[number];
            if (number > 0 && kernel->phase != kernels[number - 1].phase) {
                /* The barrier of the test between its dispatches. */
                barrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, between[kernel->phase].available,
                        between[kernel->phase].visible);
                draw_order(&p);
            }
            vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[number]);
            vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layouts[number], 0, 1, &sets[number], 0, NULL);
            vkCmdPushConstants(commands, layouts[number], VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof p, &p);
            vkCmdDispatch(commands, p.groups * kernel->classes, 1, 1);
        }
        barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_ACCESS_TRANSFER_READ_BIT);
        VkBufferCopy back = {0, 0, (VkDeviceSize)SLOTS * played * 4};
        vkCmdCopyBuffer(commands, results.handle, results_back.handle, 1, &back);
        vkCmdCopyBuffer(commands, locations.handle, locations_back.handle, 1, &to_device);
        barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                VK_ACCESS_HOST_READ_BIT);
        check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
        VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
        submit.commandBufferCount = 1;
        submit.pCommandBuffers = &commands;
        check(vkQueueSubmit(queue, 1, &submit, fence), "vkQueueSubmit");
        check(vkWaitForFences(device, 1, &fence, VK_TRUE, 10000000000u), "vkWaitForFences: ten seconds");
        check(vkResetFences(device, 1, &fence), "vkResetFences");
        not_executed += count_dispatch(&p, played, results_back.words, locations_back.words);
        instances += played;
        ++dispatches;
    } while (now() - start < seconds);

    printf("%llu instances in %llu dispatches", (unsigned long long)instances, (unsigned long long)dispatches);
    if (unresolved) printf(", %llu with an unfinished loop", (unsigned long long)unresolved);
    if (not_executed) printf(", %llu not executed", (unsigned long long)not_executed);
    if (lost_rows) printf(", %llu more with other values", (unsigned long long)lost_rows);
    printf("\n");
    qsort(rows, row_count, sizeof rows[0], compare_by_count);
    int broken = lost_rows > 0 && JUDGED;
    for (uint32_t number = 0; number < row_count; ++number) {
        const char *verdict = verdict_of(rows[number].values);
        printf("%14llu ", (unsigned long long)rows[number].count);
        for (size_t at = 0; at < VALUES; ++at) printf(" %s=%lu", values[at].name, (unsigned long)rows[number].values[at]);
        printf("  %s\n", verdict);
        broken |= strncmp(verdict, "forbidden", 9) == 0;
    }
    if (instances == not_executed) fail("nothing was executed", 0);
    return broken;
}
