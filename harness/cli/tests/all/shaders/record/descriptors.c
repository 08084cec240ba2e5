/* One dispatch whose binding 0 has a kind of descriptor. Arguments: the module, the kind, the contents (own, same or next). Exits with 77
 * if the device lacks the kind.
 *
 * Kinds: buffer; alias (of binding 1), overlap (a part of it); push (descriptors), template, push-template; late (a set that may be updated
 * after it is bound), updated (one that was, to other contents); array (the last of three elements has the contents), partial (the only
 * element of eight), unbound (an element that is chosen and not bound); texels, storage-texels; inline; images (the last of two);
 * descriptor-buffer, descriptor-buffer-updated (as above); robust1, robust2 (the device has this robustness), robust-stage (a stage alone has
 * robust1), robust-none (a stage has none, the device robust1). Contents that are far are beyond all buffers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define CHECK(call) if ((call) != VK_SUCCESS) { fprintf(stderr, "%s\n", #call); exit(3); }
enum { BUFFER_BYTES = 1024, BUFFERS = 5, UNSUPPORTED = 77, DESCRIPTOR_BYTES = 16 };

static VkDevice device;
static VkBuffer buffers[BUFFERS];
static uint32_t *contents[BUFFERS];
static VkImage images[2];
static VkImageView views[2];
static int has_addresses; /* True for descriptor buffers. The last buffer has the descriptors. */
static int has_pointer;

static void fill(uint32_t *words, const char *how) {
    for (uint32_t i = 0; i < 8; i++) words[i] = how[0] == 's' ? 0 : how[0] == 'n' ? i + 1 : how[0] == 'f' ? i + 512 : i;
}

static int has_extension(VkPhysicalDevice physical, const char *name) {
    static VkExtensionProperties all[512];
    uint32_t count = 512;
    vkEnumerateDeviceExtensionProperties(physical, NULL, &count, all);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(all[i].extensionName, name) == 0) return 1;
    return 0;
}

static void create_buffers(VkPhysicalDevice physical) {
    VkPhysicalDeviceMemoryProperties memories;
    vkGetPhysicalDeviceMemoryProperties(physical, &memories);
    uint32_t type = 0, wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    while ((memories.memoryTypes[type].propertyFlags & wanted) != wanted) type++;
    VkMemoryAllocateFlagsInfo flags = { VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT };
    VkMemoryAllocateInfo memory_info = { VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, has_addresses || has_pointer ? &flags : NULL, (BUFFERS + 2) << 16, type };
    VkDeviceMemory memory;
    CHECK(vkAllocateMemory(device, &memory_info, NULL, &memory));
    char *mapped;
    CHECK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&mapped));
    memset(mapped, 0, (BUFFERS + 2) << 16);
    for (int i = 0; i < BUFFERS; i++) {
        VkBufferCreateInfo info = { VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = BUFFER_BYTES, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT
            | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | (has_addresses || has_pointer ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0)
            | (has_addresses && i == BUFFERS - 1 ? VK_BUFFER_USAGE_RESOURCE_DESCRIPTOR_BUFFER_BIT_EXT : 0) };
        CHECK(vkCreateBuffer(device, &info, NULL, &buffers[i]));
        VkMemoryRequirements needed;
        vkGetBufferMemoryRequirements(device, buffers[i], &needed);
        CHECK(vkBindBufferMemory(device, buffers[i], memory, (VkDeviceSize)i << 16));
        contents[i] = (uint32_t *)(mapped + (i << 16));
    }
    for (int i = 0; i < 2; i++) {
        VkImageCreateInfo info = { VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = VK_FORMAT_R32_UINT, .extent = { 8, 1, 1 },
            .mipLevels = 1, .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT, .tiling = VK_IMAGE_TILING_OPTIMAL,
            .usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT };
        CHECK(vkCreateImage(device, &info, NULL, &images[i]));
        VkMemoryRequirements needed;
        vkGetImageMemoryRequirements(device, images[i], &needed);
        CHECK(vkBindImageMemory(device, images[i], memory, (VkDeviceSize)(BUFFERS + i) << 16));
        VkImageViewCreateInfo view_info = { VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO, .image = images[i], .viewType = VK_IMAGE_VIEW_TYPE_2D,
            .format = VK_FORMAT_R32_UINT, .subresourceRange = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 } };
        CHECK(vkCreateImageView(device, &view_info, NULL, &views[i]));
    }
}

static VkDeviceAddress address_of(VkBuffer buffer) {
    VkBufferDeviceAddressInfo info = { VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, NULL, buffer };
    return vkGetBufferDeviceAddress(device, &info);
}

/* Writes the descriptor of a buffer at its place in the descriptor buffer. */
static void write_descriptor(VkDescriptorSetLayout layout, uint32_t binding, VkDescriptorType type, VkBuffer buffer) {
    PFN_vkGetDescriptorEXT get = (PFN_vkGetDescriptorEXT)vkGetDeviceProcAddr(device, "vkGetDescriptorEXT");
    PFN_vkGetDescriptorSetLayoutBindingOffsetEXT offset_of =
        (PFN_vkGetDescriptorSetLayoutBindingOffsetEXT)vkGetDeviceProcAddr(device, "vkGetDescriptorSetLayoutBindingOffsetEXT");
    VkDescriptorAddressInfoEXT address = { VK_STRUCTURE_TYPE_DESCRIPTOR_ADDRESS_INFO_EXT, NULL, address_of(buffer), BUFFER_BYTES, VK_FORMAT_UNDEFINED };
    VkDescriptorGetInfoEXT info = { VK_STRUCTURE_TYPE_DESCRIPTOR_GET_INFO_EXT, NULL, type, { .pStorageBuffer = &address } };
    VkDeviceSize offset;
    offset_of(device, layout, binding, &offset);
    get(device, &info, DESCRIPTOR_BYTES, (char *)contents[BUFFERS - 1] + offset);
}

int main(int count, char **arguments) {
    static uint32_t code[1 << 14];
    char path[4096];
    if (count != 5) return 3;
    snprintf(path, sizeof path, "%.*s%s.spv", (int)(strlen(arguments[1]) - 5), arguments[1], arguments[4]);
    FILE *file = fopen(path, "rb");
    if (!file) return 3;
    size_t words = fread(code, 4, 1 << 14, file);
    const char *kind = arguments[2], *how = arguments[3];
    int is_late = strcmp(kind, "late") == 0 || strcmp(kind, "updated") == 0, is_unbound = strcmp(kind, "unbound") == 0;
    int is_partial = strcmp(kind, "partial") == 0 || is_unbound, is_inline = strcmp(kind, "inline") == 0, is_pushed = strncmp(kind, "push", 4) == 0;
    has_addresses = strncmp(kind, "descriptor-buffer", 17) == 0;
    has_pointer = strncmp(kind, "pointer", 7) == 0;
    int has_template = strstr(kind, "template") != NULL, is_images = strcmp(kind, "images") == 0;
    VkApplicationInfo application = { VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2 };
    VkInstanceCreateInfo instance_info = { VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application };
    VkInstance instance;
    CHECK(vkCreateInstance(&instance_info, NULL, &instance));
    VkPhysicalDevice physical;
    uint32_t one = 1;
    if (vkEnumeratePhysicalDevices(instance, &one, &physical) < 0 || one == 0) return 3;
    VkPhysicalDeviceInlineUniformBlockFeatures inlines = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_INLINE_UNIFORM_BLOCK_FEATURES };
    VkPhysicalDeviceDescriptorIndexingFeatures indexing = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES, &inlines };
    VkPhysicalDeviceFeatures2 features = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &indexing };
    vkGetPhysicalDeviceFeatures2(physical, &features);
    int is_robust2 = strcmp(kind, "robust2") == 0, is_robust = is_robust2 || strcmp(kind, "robust1") == 0;
    int is_robust_stage = strncmp(kind, "robust-", 7) == 0, has_no_robustness = strcmp(kind, "robust-none") == 0;
    features.features.robustBufferAccess = is_robust || has_no_robustness || is_unbound;
    const char *extension = is_pushed ? VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME : is_inline ? VK_EXT_INLINE_UNIFORM_BLOCK_EXTENSION_NAME
        : is_robust2 ? VK_EXT_ROBUSTNESS_2_EXTENSION_NAME : is_robust_stage ? VK_EXT_PIPELINE_ROBUSTNESS_EXTENSION_NAME
        : has_addresses ? VK_EXT_DESCRIPTOR_BUFFER_EXTENSION_NAME : NULL;
    if ((extension && !has_addresses && !has_extension(physical, extension)) || (is_inline && !inlines.inlineUniformBlock)
        || (is_late && !indexing.descriptorBindingStorageBufferUpdateAfterBind)
        || (is_partial && !(indexing.descriptorBindingPartiallyBound && indexing.runtimeDescriptorArray))) return UNSUPPORTED;
    float priority = 1;
    VkDeviceQueueCreateInfo queue_info = { VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority };
    VkPhysicalDeviceBufferDeviceAddressFeatures addresses = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, .bufferDeviceAddress = VK_TRUE };
    VkPhysicalDeviceRobustness2FeaturesEXT robustness2 = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT, .robustBufferAccess2 = VK_TRUE };
    VkPhysicalDevicePipelineRobustnessFeaturesEXT by_stage = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT, NULL, VK_TRUE };
    if (!is_inline) indexing.pNext = has_addresses || has_pointer ? &addresses : is_robust2 ? (void *)&robustness2 : is_robust_stage ? &by_stage : NULL;
    VkDeviceCreateInfo device_info = { VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &features, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue_info,
        .enabledExtensionCount = extension ? 1 : 0, .ppEnabledExtensionNames = &extension };
    CHECK(vkCreateDevice(physical, &device_info, NULL, &device));
    VkQueue queue;
    vkGetDeviceQueue(device, 0, 0, &queue);
    create_buffers(physical);
    fill(contents[0], how);
    fill(contents[3], "same");

    uint32_t elements = strcmp(kind, "array") == 0 ? 3 : is_partial ? 8 : is_images ? 2 : 1;
    VkDescriptorType type = strcmp(kind, "texels") == 0 ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER : strcmp(kind, "storage-texels") == 0
        ? VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER : is_inline ? VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK : is_images ? VK_DESCRIPTOR_TYPE_STORAGE_IMAGE
        : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    VkDescriptorSetLayoutBinding bindings[3] = { { 0, type, is_inline ? 32 : elements, VK_SHADER_STAGE_COMPUTE_BIT, NULL },
        { 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL },
        { 2, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL } };
    VkDescriptorBindingFlags flags[3] = { is_late ? VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT : is_partial ? VK_DESCRIPTOR_BINDING_PARTIALLY_BOUND_BIT : 0 };
    VkDescriptorSetLayoutBindingFlagsCreateInfo flag_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO, NULL, 3, flags };
    VkDescriptorSetLayoutCreateInfo layout_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, &flag_info,
        is_late ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT : is_pushed ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR
        : has_addresses ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_DESCRIPTOR_BUFFER_BIT_EXT : 0, 3, bindings };
    VkDescriptorSetLayout set_layout;
    CHECK(vkCreateDescriptorSetLayout(device, &layout_info, NULL, &set_layout));
    VkPipelineLayoutCreateInfo pipeline_layout_info = { VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &set_layout };
    VkPipelineLayout layout;
    CHECK(vkCreatePipelineLayout(device, &pipeline_layout_info, NULL, &layout));
    VkDescriptorPoolSize sizes[3] = { { type, is_inline ? 32 : 16 }, { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 16 }, { VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1 } };
    VkDescriptorPoolInlineUniformBlockCreateInfo blocks = { VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_INLINE_UNIFORM_BLOCK_CREATE_INFO, NULL, 1 };
    VkDescriptorPoolCreateInfo pool_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, is_inline ? &blocks : NULL,
        is_late ? VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT : 0, 1, 3, sizes };
    VkDescriptorPool pool;
    CHECK(vkCreateDescriptorPool(device, &pool_info, NULL, &pool));
    VkDescriptorSetAllocateInfo set_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL, pool, 1, &set_layout };
    VkDescriptorSet set = VK_NULL_HANDLE;
    if (!is_pushed && !has_addresses) CHECK(vkAllocateDescriptorSets(device, &set_info, &set));

    /* The element with the contents is the last one; of a partially bound array, the only one. */
    uint32_t chosen = is_partial ? 5 : elements - 1;
    VkDescriptorBufferInfo ranges[3] = { { buffers[3], 0, VK_WHOLE_SIZE }, { buffers[3], 0, VK_WHOLE_SIZE }, { buffers[3], 0, VK_WHOLE_SIZE } };
    ranges[is_partial ? 0 : chosen].buffer = buffers[0];
    VkDescriptorBufferInfo to = { buffers[1], 0, VK_WHOLE_SIZE }, number = { buffers[2], 0, VK_WHOLE_SIZE };
    if (strcmp(kind, "alias") == 0) to.buffer = buffers[0];
    if (strcmp(kind, "overlap") == 0) to = (VkDescriptorBufferInfo){ buffers[0], 256, VK_WHOLE_SIZE };
    contents[2][0] = is_unbound ? 4 : chosen;
    /* Of a chain, buffer 3 has the address of buffer 0. */
    int is_chain = strcmp(kind, "pointer-chain") == 0;
    if (has_pointer) memcpy(contents[2], (VkDeviceAddress[]){ address_of(buffers[is_chain ? 3 : 0]) + (is_chain ? 16 : 0) }, sizeof(VkDeviceAddress));
    if (is_chain) memcpy((char *)contents[3] + 16, (VkDeviceAddress[]){ address_of(buffers[0]) }, sizeof(VkDeviceAddress));
    VkBufferViewCreateInfo view_info = { VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, .buffer = buffers[0], .format = VK_FORMAT_R32_UINT, .range = 64 };
    VkBufferView texels;
    CHECK(vkCreateBufferView(device, &view_info, NULL, &texels));
    VkDescriptorImageInfo image_infos[2] = { { VK_NULL_HANDLE, views[0], VK_IMAGE_LAYOUT_GENERAL }, { VK_NULL_HANDLE, views[1], VK_IMAGE_LAYOUT_GENERAL } };
    VkWriteDescriptorSetInlineUniformBlock block = { VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET_INLINE_UNIFORM_BLOCK, NULL, 32, contents[0] };
    VkWriteDescriptorSet writes[3] = {
        { VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, is_inline ? &block : NULL, set, 0, is_partial ? chosen : 0, is_inline ? 32 : is_partial ? 1 : elements, type,
            image_infos, ranges, &texels },
        { VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, set, 1, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, NULL, &to, NULL },
        { VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, set, 2, 0, 1, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, NULL, &number, NULL } };
    VkDescriptorUpdateTemplateEntry entries[2] = { { 0, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0, 0 },
        { 1, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sizeof(VkDescriptorBufferInfo), 0 } };
    VkDescriptorBufferInfo data[2] = { ranges[0], to };
    VkDescriptorUpdateTemplateCreateInfo template_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO, .descriptorUpdateEntryCount = 2,
        .pDescriptorUpdateEntries = entries, .templateType = is_pushed ? VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS_KHR
        : VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET, .descriptorSetLayout = set_layout, .pipelineBindPoint = VK_PIPELINE_BIND_POINT_COMPUTE,
        .pipelineLayout = layout };
    VkDescriptorUpdateTemplate template = VK_NULL_HANDLE;
    if (has_template) CHECK(vkCreateDescriptorUpdateTemplate(device, &template_info, NULL, &template));
    if (!is_pushed && has_template) vkUpdateDescriptorSetWithTemplate(device, set, template, data);
    else if (!is_pushed && !has_addresses) vkUpdateDescriptorSets(device, 3, writes, 0, NULL);
    for (uint32_t i = 0; has_addresses && i < 3; i++) write_descriptor(set_layout, i, bindings[i].descriptorType, i == 0 ? buffers[0] : i == 1 ? buffers[1] : buffers[2]);

    VkShaderModuleCreateInfo module_info = { VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = words * 4, .pCode = code };
    VkShaderModule module;
    CHECK(vkCreateShaderModule(device, &module_info, NULL, &module));
    VkPipelineRobustnessBufferBehaviorEXT behaviour =
        has_no_robustness ? VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DISABLED_EXT : VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS_EXT;
    VkPipelineRobustnessCreateInfoEXT robustness = { VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO_EXT, NULL, behaviour, behaviour, behaviour,
        VK_PIPELINE_ROBUSTNESS_IMAGE_BEHAVIOR_DEVICE_DEFAULT_EXT };
    VkComputePipelineCreateInfo pipeline_info = { VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = layout,
        .flags = has_addresses ? VK_PIPELINE_CREATE_DESCRIPTOR_BUFFER_BIT_EXT : 0,
        .stage = { VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, is_robust_stage ? &robustness : NULL, .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = module, .pName = "main" } };
    VkPipeline pipeline;
    CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline_info, NULL, &pipeline));
    VkCommandPoolCreateInfo command_pool_info = { VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO };
    VkCommandPool command_pool;
    CHECK(vkCreateCommandPool(device, &command_pool_info, NULL, &command_pool));
    VkCommandBufferAllocateInfo commands_info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = command_pool, .commandBufferCount = 1 };
    VkCommandBuffer commands;
    CHECK(vkAllocateCommandBuffers(device, &commands_info, &commands));
    VkCommandBufferBeginInfo begin = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
    CHECK(vkBeginCommandBuffer(commands, &begin));
    if (is_images) {
        VkImageMemoryBarrier barriers[2];
        for (int i = 0; i < 2; i++)
            barriers[i] = (VkImageMemoryBarrier){ VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, NULL, 0, VK_ACCESS_TRANSFER_WRITE_BIT, VK_IMAGE_LAYOUT_UNDEFINED,
                VK_IMAGE_LAYOUT_GENERAL, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, images[i], { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 } };
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 2, barriers);
        VkBufferImageCopy region = { .imageSubresource = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 }, .imageExtent = { 8, 1, 1 } };
        vkCmdCopyBufferToImage(commands, buffers[3], images[0], VK_IMAGE_LAYOUT_GENERAL, 1, &region);
        vkCmdCopyBufferToImage(commands, buffers[0], images[1], VK_IMAGE_LAYOUT_GENERAL, 1, &region);
        VkMemoryBarrier barrier = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT };
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    }
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    PFN_vkCmdPushDescriptorSetKHR push = (PFN_vkCmdPushDescriptorSetKHR)vkGetDeviceProcAddr(device, "vkCmdPushDescriptorSetKHR");
    PFN_vkCmdPushDescriptorSetWithTemplateKHR push_template =
        (PFN_vkCmdPushDescriptorSetWithTemplateKHR)vkGetDeviceProcAddr(device, "vkCmdPushDescriptorSetWithTemplateKHR");
    if (has_addresses) {
        VkDescriptorBufferBindingInfoEXT bound = { VK_STRUCTURE_TYPE_DESCRIPTOR_BUFFER_BINDING_INFO_EXT, NULL, address_of(buffers[BUFFERS - 1]),
            VK_BUFFER_USAGE_RESOURCE_DESCRIPTOR_BUFFER_BIT_EXT };
        ((PFN_vkCmdBindDescriptorBuffersEXT)vkGetDeviceProcAddr(device, "vkCmdBindDescriptorBuffersEXT"))(commands, 1, &bound);
        uint32_t index = 0;
        VkDeviceSize offset = 0;
        ((PFN_vkCmdSetDescriptorBufferOffsetsEXT)vkGetDeviceProcAddr(device, "vkCmdSetDescriptorBufferOffsetsEXT"))(
            commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &index, &offset);
    } else if (is_pushed && has_template) push_template(commands, template, layout, 0, data);
    else if (is_pushed) push(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 3, writes);
    else vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
    vkCmdDispatch(commands, 1, 1, 1);
    VkMemoryBarrier shown = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT };
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &shown, 0, NULL, 0, NULL);
    CHECK(vkEndCommandBuffer(commands));
    if (strcmp(kind, "updated") == 0) {
        ranges[0].buffer = buffers[3];
        vkUpdateDescriptorSets(device, 1, writes, 0, NULL);
    }
    if (strcmp(kind, "descriptor-buffer-updated") == 0) write_descriptor(set_layout, 0, bindings[0].descriptorType, buffers[3]);
    VkSubmitInfo submit = { VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands };
    CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkDeviceWaitIdle(device));
    return 0;
}
