/* Two commands with an order between them. Arguments: the module, the first command, the order, the second command. With the arguments
 * of a module and "faults", dispatches 30 specializations of it instead, all of them ordered.
 *
 * Commands: ab, bc, ... dispatches that read the first buffer and write the second (ab+: from word 16 on), fill-X, copy-XY, indirect-XY
 * (the grid is in X), read-X and write-X (copies of an image to and from buffer X), clear and pass (of that image), draw-X and index-X (a
 * pass with vertices or indices in X), show-X, store-X and sum-X (with a fragment shader that reads X, writes it, or adds to it), alias-X (a copy of buffer X to an
 * image with the memory of b). a, b and c are three buffers; d has the memory of b. The modules of a draw are next to the first one.
 *
 * Orders: none, submit (two submissions), semaphore, fence, host (the host writes a before it waits), fence-host (and after it),
 * fence-empty (of a submission of nothing), timeline-N (a wait for value N, of which the first submission signals 2),
 * queues-SEMAPHORE-FAMILIES (two queue families; 1 or 0; the families of a release and of an acquire as four digits), or a barrier,
 * FROM_STAGES:FROM_ACCESSES:TO_STAGES:TO_ACCESSES, each in hexadecimal, followed by @X if it is for buffer X alone, by I if it is a
 * layout transition of the image, by V or W if it waits for an event that is signalled after or before the first command, by p if it is
 * the external dependency of the render pass, and by an s if the first command is in a secondary command buffer. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define CHECK(call) if ((call) != VK_SUCCESS) { fprintf(stderr, "%s\n", #call); exit(3); }

static VkBuffer buffers[4];
static VkDescriptorSet sets[4][4];
static VkPipelineLayout layout;
static VkPipeline pipeline, draws[3];
static VkImage image, alias;
static VkRenderPass pass;
static VkFramebuffer framebuffer;
static VkEvent event;
static VkImageLayout image_layout = VK_IMAGE_LAYOUT_GENERAL;
static const VkImageSubresourceRange whole = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 };

static void record_draw(VkCommandBuffer commands, const char *command, int used) {
    int is_sum = strncmp(command, "sum", 3) == 0, is_store = is_sum || strncmp(command, "store", 5) == 0, is_show = strncmp(command, "show", 4) == 0, has_indices = command[0] == 'i';
    VkDeviceSize start = 0;
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, draws[is_store + is_sum]);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, layout, 0, 1, &sets[is_show ? used : 2][is_store ? used : 2], 0, NULL);
    vkCmdBindVertexBuffers(commands, 0, 1, &buffers[command[0] == 'd' ? used : 2], &start);
    if (has_indices) vkCmdBindIndexBuffer(commands, buffers[used], 0, VK_INDEX_TYPE_UINT32);
    if (has_indices) vkCmdDrawIndexed(commands, 3, 1, 0, 0, 0);
    else vkCmdDraw(commands, 3, 1, 0, 0);
}

static void record_command(VkCommandBuffer commands, const char *command) {
    const char *dash = strchr(command, '-');
    const char *names = dash ? dash + 1 : command;
    if (strncmp(command, "fill", 4) == 0) {
        vkCmdFillBuffer(commands, buffers[names[0] - 'a'], 0, VK_WHOLE_SIZE, 1);
        return;
    }
    VkBufferImageCopy texels = { .imageSubresource = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 }, .imageExtent = { 4, 4, 1 } };
    if (strncmp(command, "read", 4) == 0) {
        vkCmdCopyImageToBuffer(commands, image, image_layout, buffers[names[0] - 'a'], 1, &texels);
        return;
    }
    if (strncmp(command, "write", 5) == 0 || strncmp(command, "alias", 5) == 0) {
        vkCmdCopyBufferToImage(commands, buffers[names[0] - 'a'], command[0] == 'a' ? alias : image, image_layout, 1, &texels);
        return;
    }
    if (strcmp(command, "clear") == 0) {
        VkClearColorValue colour = { { 1, 1, 1, 1 } };
        vkCmdClearColorImage(commands, image, image_layout, &colour, 1, &whole);
        return;
    }
    int is_draw = strncmp(command, "draw", 4) == 0 || strncmp(command, "index-", 6) == 0 || command[0] == 's';
    if (strcmp(command, "pass") == 0 || is_draw) {
        VkRenderPassBeginInfo begin = { VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO, NULL, pass, framebuffer, { { 0, 0 }, { 4, 4 } }, 1,
            &(VkClearValue){ .color = { { 1, 1, 1, 1 } } } };
        vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
        if (is_draw) record_draw(commands, command, names[0] - 'a');
        vkCmdEndRenderPass(commands);
        return;
    }
    int from = names[0] - 'a', to = names[1] - 'a';
    if (strncmp(command, "copy", 4) == 0) {
        VkBufferCopy region = { 0, 0, 64 };
        vkCmdCopyBuffer(commands, buffers[from], buffers[to], 1, &region);
        return;
    }
    uint32_t first = names[2] == '+' ? 16 : 0;
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &sets[from][to], 0, NULL);
    vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &first);
    if (dash) vkCmdDispatchIndirect(commands, buffers[from], 0);
    else vkCmdDispatch(commands, 2, 1, 1);
}

/* Returns true if a letter follows the masks of an order. */
static int has_letter(const char *order, char letter) {
    const char *at = strrchr(order, ':');
    return at && !strchr(order, '@') && strchr(at + 1 + strspn(at + 1, "0123456789abcdef"), letter);
}

static void record_order(VkCommandBuffer commands, const char *order) {
    unsigned long long from, from_access, to, to_access;
    if (sscanf(order, "%llx:%llx:%llx:%llx", &from, &from_access, &to, &to_access) != 4 || has_letter(order, 'p')) return;
    const char *at = strchr(order, '@');
    int is_event = has_letter(order, 'V') || has_letter(order, 'W'), is_image = has_letter(order, 'I');
    VkMemoryBarrier memory = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, (uint32_t)from_access, (uint32_t)to_access };
    VkBufferMemoryBarrier buffer = { VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, NULL, (uint32_t)from_access, (uint32_t)to_access,
        VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, at ? buffers[at[1] - 'a'] : VK_NULL_HANDLE, 0, VK_WHOLE_SIZE };
    VkImageMemoryBarrier transition = { VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, NULL, (uint32_t)from_access, (uint32_t)to_access, image_layout,
        VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, image, whole };
    if (is_event) vkCmdWaitEvents(commands, 1, &event, (uint32_t)from, (uint32_t)to, 1, &memory, 0, NULL, 0, NULL);
    else vkCmdPipelineBarrier(commands, (uint32_t)from, (uint32_t)to, 0, at || is_image ? 0 : 1, &memory, at ? 1 : 0, &buffer, is_image, &transition);
    if (is_image) image_layout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
}

static void record_transfer(VkCommandBuffer commands, const char *families, VkPipelineStageFlags from, VkPipelineStageFlags to) {
    VkBufferMemoryBarrier transfer = { VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, NULL, VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT,
        (uint32_t)(families[0] - '0'), (uint32_t)(families[1] - '0'), buffers[1], 0, VK_WHOLE_SIZE };
    if (families[0] != families[1]) vkCmdPipelineBarrier(commands, from, to, 0, 0, NULL, 1, &transfer, 0, NULL);
}

/* Returns the module in the file `first` + `suffix`. */
static VkShaderModule load_module(VkDevice device, const char *first, const char *suffix) {
    static uint32_t code[1 << 14];
    char path[4096];
    snprintf(path, sizeof path, "%s%s", first, suffix);
    FILE *file = fopen(path, "rb");
    if (!file) exit(3);
    VkShaderModuleCreateInfo info = { VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = 4 * fread(code, 4, 1 << 14, file), .pCode = code };
    fclose(file);
    VkShaderModule module;
    CHECK(vkCreateShaderModule(device, &info, NULL, &module));
    return module;
}

static void create_draws(VkDevice device, const char *first) {
    VkPipelineShaderStageCreateInfo stages[2] = { { VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_VERTEX_BIT, .pName = "main",
            .module = load_module(device, first, ".vert0") },
        { VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_FRAGMENT_BIT, .pName = "main" } };
    VkVertexInputBindingDescription binding = { 0, 16, VK_VERTEX_INPUT_RATE_VERTEX };
    VkVertexInputAttributeDescription attribute = { 0, 0, VK_FORMAT_R32G32B32A32_SFLOAT, 0 };
    VkPipelineVertexInputStateCreateInfo input = { VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO, NULL, 0, 1, &binding, 1, &attribute };
    VkPipelineInputAssemblyStateCreateInfo assembly = { VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO, .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST };
    VkViewport viewport = { 0, 0, 4, 4, 0, 1 };
    VkRect2D scissor = { { 0, 0 }, { 4, 4 } };
    VkPipelineViewportStateCreateInfo viewports = { VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, NULL, 0, 1, &viewport, 1, &scissor };
    VkPipelineRasterizationStateCreateInfo rasterization = { VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1 };
    VkPipelineMultisampleStateCreateInfo samples = { VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO, .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT };
    VkPipelineColorBlendAttachmentState blended = { .colorWriteMask = 0xf };
    VkPipelineColorBlendStateCreateInfo blend = { VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = 1, .pAttachments = &blended };
    VkGraphicsPipelineCreateInfo info = { VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, .stageCount = 2, .pStages = stages, .pVertexInputState = &input,
        .pInputAssemblyState = &assembly, .pViewportState = &viewports, .pRasterizationState = &rasterization, .pMultisampleState = &samples,
        .pColorBlendState = &blend, .layout = layout, .renderPass = pass };
    static const char *const FRAGMENTS[3] = { ".frag0", ".frag1", ".frag2" };
    for (int mode = 0; mode < 3; mode++) {
        stages[1].module = load_module(device, first, FRAGMENTS[mode]);
        CHECK(vkCreateGraphicsPipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &draws[mode]));
    }
}

int main(int count, char **arguments) {
    static uint32_t code[1 << 16];
    FILE *file = count == 5 || count == 3 ? fopen(arguments[1], "rb") : NULL;
    if (!file) return 3;
    size_t words = fread(code, 4, 1 << 16, file);
    const char *order = count == 5 ? arguments[3] : "none";
    VkApplicationInfo application = { VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2 };
    VkInstanceCreateInfo instance_info = { VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application };
    VkInstance instance;
    CHECK(vkCreateInstance(&instance_info, NULL, &instance));
    VkPhysicalDevice physical;
    uint32_t one = 1;
    if (vkEnumeratePhysicalDevices(instance, &one, &physical) < 0 || one == 0) return 3;
    float priority = 1;
    VkDeviceQueueCreateInfo queue_infos[2] = { { VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority },
        { VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = 1, .queueCount = 1, .pQueuePriorities = &priority } };
    int has_queues = strncmp(order, "queues", 6) == 0, has_timeline = strncmp(order, "timeline", 8) == 0;
    VkPhysicalDeviceTimelineSemaphoreFeatures timelines = { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, NULL, VK_TRUE };
    VkPhysicalDeviceFeatures features = { .fragmentStoresAndAtomics = VK_TRUE };
    VkDeviceCreateInfo device_info = { VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = has_timeline ? &timelines : NULL, .pEnabledFeatures = &features,
        .queueCreateInfoCount = has_queues ? 2 : 1, .pQueueCreateInfos = queue_infos };
    VkDevice device;
    CHECK(vkCreateDevice(physical, &device_info, NULL, &device));
    VkQueue queue, second_queue;
    vkGetDeviceQueue(device, 0, 0, &queue);
    vkGetDeviceQueue(device, has_queues, 0, &second_queue);

    VkPhysicalDeviceMemoryProperties memories;
    vkGetPhysicalDeviceMemoryProperties(physical, &memories);
    uint32_t type = 0, wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    while ((memories.memoryTypes[type].propertyFlags & wanted) != wanted) type++;
    VkMemoryAllocateInfo memory_info = { VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, 4 << 16, type };
    VkDeviceMemory memory;
    CHECK(vkAllocateMemory(device, &memory_info, NULL, &memory));
    for (int i = 0; i < 4; i++) {
        VkBufferCreateInfo buffer_info = { VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 256, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_INDEX_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT };
        CHECK(vkCreateBuffer(device, &buffer_info, NULL, &buffers[i]));
        VkMemoryRequirements needed;
        vkGetBufferMemoryRequirements(device, buffers[i], &needed);
        CHECK(vkBindBufferMemory(device, buffers[i], memory, (VkDeviceSize)(i == 3 ? 1 : i) << 16));
    }
    VkImageCreateInfo image_info = { VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = VK_FORMAT_R8G8B8A8_UNORM,
        .extent = { 4, 4, 1 }, .mipLevels = 1, .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT, .tiling = VK_IMAGE_TILING_LINEAR,
        .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT };
    CHECK(vkCreateImage(device, &image_info, NULL, &image));
    CHECK(vkCreateImage(device, &image_info, NULL, &alias));
    CHECK(vkBindImageMemory(device, image, memory, 3 << 16));
    CHECK(vkBindImageMemory(device, alias, memory, 1 << 16));
    VkImageViewCreateInfo view_info = { VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO, .image = image, .viewType = VK_IMAGE_VIEW_TYPE_2D,
        .format = VK_FORMAT_R8G8B8A8_UNORM, .subresourceRange = whole };
    VkImageView view;
    CHECK(vkCreateImageView(device, &view_info, NULL, &view));
    VkAttachmentDescription attachment = { 0, VK_FORMAT_R8G8B8A8_UNORM, VK_SAMPLE_COUNT_1_BIT, VK_ATTACHMENT_LOAD_OP_CLEAR,
        VK_ATTACHMENT_STORE_OP_STORE, VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_ATTACHMENT_STORE_OP_DONT_CARE, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_GENERAL };
    VkAttachmentReference reference = { 0, VK_IMAGE_LAYOUT_GENERAL };
    VkSubpassDescription subpass = { .colorAttachmentCount = 1, .pColorAttachments = &reference };
    unsigned long long scopes[4] = { 0 };
    sscanf(order, "%llx:%llx:%llx:%llx", &scopes[0], &scopes[1], &scopes[2], &scopes[3]);
    VkSubpassDependency dependency = { 0, VK_SUBPASS_EXTERNAL, (uint32_t)scopes[0], (uint32_t)scopes[2], (uint32_t)scopes[1], (uint32_t)scopes[3], 0 };
    VkRenderPassCreateInfo pass_info = { VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, .attachmentCount = 1, .pAttachments = &attachment,
        .subpassCount = 1, .pSubpasses = &subpass, .dependencyCount = has_letter(order, 'p') ? 1 : 0, .pDependencies = &dependency };
    CHECK(vkCreateRenderPass(device, &pass_info, NULL, &pass));
    VkFramebufferCreateInfo framebuffer_info = { VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO, .renderPass = pass, .attachmentCount = 1,
        .pAttachments = &view, .width = 4, .height = 4, .layers = 1 };
    CHECK(vkCreateFramebuffer(device, &framebuffer_info, NULL, &framebuffer));
    VkEventCreateInfo event_info = { VK_STRUCTURE_TYPE_EVENT_CREATE_INFO };
    CHECK(vkCreateEvent(device, &event_info, NULL, &event));
    uint32_t *contents;
    CHECK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&contents));
    for (int i = 0; i < 4 << 14; i++) contents[i] = 1;

    VkDescriptorSetLayoutBinding bindings[2] = { { 0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_ALL, NULL },
                                                 { 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_ALL, NULL } };
    VkDescriptorSetLayoutCreateInfo layout_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 2, .pBindings = bindings };
    VkDescriptorSetLayout set_layout;
    CHECK(vkCreateDescriptorSetLayout(device, &layout_info, NULL, &set_layout));
    VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 32 };
    VkDescriptorPoolCreateInfo pool_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 16, .poolSizeCount = 1, .pPoolSizes = &size };
    VkDescriptorPool pool;
    CHECK(vkCreateDescriptorPool(device, &pool_info, NULL, &pool));
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            VkDescriptorSetAllocateInfo set_info = { VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL, pool, 1, &set_layout };
            CHECK(vkAllocateDescriptorSets(device, &set_info, &sets[from][to]));
            VkDescriptorBufferInfo ranges[2] = { { buffers[from], 0, VK_WHOLE_SIZE }, { buffers[to], 0, VK_WHOLE_SIZE } };
            VkWriteDescriptorSet write = { VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = sets[from][to], .descriptorCount = 2,
                .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = ranges };
            vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
        }
    VkShaderModuleCreateInfo module_info = { VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = words * 4, .pCode = code };
    VkShaderModule module;
    CHECK(vkCreateShaderModule(device, &module_info, NULL, &module));
    VkPushConstantRange pushed = { VK_SHADER_STAGE_COMPUTE_BIT, 0, 4 };
    VkPipelineLayoutCreateInfo pipeline_layout_info = { VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1,
        .pSetLayouts = &set_layout, .pushConstantRangeCount = 1, .pPushConstantRanges = &pushed };
    CHECK(vkCreatePipelineLayout(device, &pipeline_layout_info, NULL, &layout));
    VkComputePipelineCreateInfo pipeline_info = { VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = layout,
        .stage = { VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = module, .pName = "main" } };
    VkPipeline pipelines[30];
    for (int fault = 0; fault < (count == 3 ? 30 : 1); fault++) {
        VkSpecializationMapEntry entry = { 0, 0, sizeof fault };
        VkSpecializationInfo constants = { 1, &entry, sizeof fault, &fault };
        if (count == 3) pipeline_info.stage.pSpecializationInfo = &constants;
        CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline_info, NULL, &pipelines[fault]));
    }
    pipeline = pipelines[0];
    if (count == 5) create_draws(device, arguments[1]);

    VkCommandPoolCreateInfo command_pool_info = { VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO };
    VkCommandPool command_pool, second_pool;
    CHECK(vkCreateCommandPool(device, &command_pool_info, NULL, &command_pool));
    VkCommandBufferAllocateInfo commands_info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = command_pool };
    VkCommandBuffer commands[2], secondary;
    commands_info.commandBufferCount = 1;
    CHECK(vkAllocateCommandBuffers(device, &commands_info, &commands[0]));
    command_pool_info.queueFamilyIndex = has_queues;
    CHECK(vkCreateCommandPool(device, &command_pool_info, NULL, &second_pool));
    VkCommandBufferAllocateInfo second_info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = second_pool, .commandBufferCount = 1 };
    CHECK(vkAllocateCommandBuffers(device, &second_info, &commands[1]));
    commands_info.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
    CHECK(vkAllocateCommandBuffers(device, &commands_info, &secondary));
    VkCommandBufferInheritanceInfo inherited = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO };
    VkCommandBufferBeginInfo begin = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .pInheritanceInfo = &inherited };
    int has_secondary = order[strlen(order) - 1] == 's', is_host = strcmp(order, "host") == 0;
    int is_split = order[0] == 's' || strncmp(order, "fence", 5) == 0 || has_timeline || has_queues || is_host;
    CHECK(vkBeginCommandBuffer(commands[0], &begin));
    VkImageMemoryBarrier start = { VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, NULL, 0, VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
        VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, image, whole };
    vkCmdPipelineBarrier(commands[0], VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 1, &start);
    start.image = alias;
    if (count == 5 && strncmp(arguments[4], "alias", 5) == 0)
        vkCmdPipelineBarrier(commands[0], VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 1, &start);
    if (has_letter(order, 'W')) vkCmdSetEvent(commands[0], event, (uint32_t)scopes[0]);
    if (count == 3) {
        vkCmdBindDescriptorSets(commands[0], VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &sets[0][2], 0, NULL);
        for (int fault = 0; fault < 30; fault++) {
            vkCmdBindPipeline(commands[0], VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[fault]);
            vkCmdDispatch(commands[0], 2, 1, 1);
            record_order(commands[0], "10000:18000:10000:18000");
        }
    } else if (has_secondary) {
        CHECK(vkBeginCommandBuffer(secondary, &begin));
        record_command(secondary, arguments[2]);
        CHECK(vkEndCommandBuffer(secondary));
        vkCmdExecuteCommands(commands[0], 1, &secondary);
    } else {
        record_command(commands[0], arguments[2]);
    }
    if (has_letter(order, 'V')) vkCmdSetEvent(commands[0], event, (uint32_t)scopes[0]);
    if (!is_split && count == 5) {
        record_order(commands[0], order);
        record_command(commands[0], arguments[4]);
    }
    const char *families = has_queues ? strrchr(order, '-') + 1 : "0000";
    record_transfer(commands[0], families, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT);
    CHECK(vkEndCommandBuffer(commands[0]));
    CHECK(vkBeginCommandBuffer(commands[1], &begin));
    record_transfer(commands[1], families + 2, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    if (is_split) record_command(commands[1], arguments[4]);
    CHECK(vkEndCommandBuffer(commands[1]));

    VkSemaphoreTypeCreateInfo timeline_info = { VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, NULL, VK_SEMAPHORE_TYPE_TIMELINE, 1 };
    VkSemaphoreCreateInfo semaphore_info = { VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = has_timeline ? &timeline_info : NULL };
    VkSemaphore semaphore;
    CHECK(vkCreateSemaphore(device, &semaphore_info, NULL, &semaphore));
    VkFenceCreateInfo fence_info = { VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    VkFence fence;
    CHECK(vkCreateFence(device, &fence_info, NULL, &fence));
    uint32_t uses_semaphore = strcmp(order, "semaphore") == 0 || has_timeline || strncmp(order, "queues-1", 8) == 0;
    uint64_t signalled = 2, waited = has_timeline ? (uint64_t)(order[9] - '0') : 0;
    VkTimelineSemaphoreSubmitInfo values = { VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, NULL, 1, &waited, 1, &signalled };
    VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkSubmitInfo first = { VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = has_timeline ? &values : NULL, .commandBufferCount = 1, .pCommandBuffers = &commands[0],
        .signalSemaphoreCount = uses_semaphore, .pSignalSemaphores = &semaphore };
    VkSubmitInfo second = { VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = has_timeline ? &values : NULL, .commandBufferCount = 1, .pCommandBuffers = &commands[1],
        .waitSemaphoreCount = uses_semaphore, .pWaitSemaphores = &semaphore, .pWaitDstStageMask = &stages };
    int is_empty = strcmp(order, "fence-empty") == 0;
    CHECK(vkQueueSubmit(queue, 1, &first, is_empty ? VK_NULL_HANDLE : fence));
    if (is_empty) CHECK(vkQueueSubmit(queue, 0, NULL, fence));
    if (is_host) contents[3] = 7;
    if (strncmp(order, "fence", 5) == 0) CHECK(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
    if (strcmp(order, "fence-host") == 0) contents[3] = 7;
    if (is_split) CHECK(vkQueueSubmit(second_queue, 1, &second, VK_NULL_HANDLE));
    CHECK(vkDeviceWaitIdle(device));
    for (int i = 0; i <= has_queues; i++) { /* Makes the results visible to the host. */
        VkCommandBufferAllocateInfo shown_info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = i ? second_pool : command_pool, .commandBufferCount = 1 };
        VkMemoryBarrier shown = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_MEMORY_WRITE_BIT, VK_ACCESS_HOST_READ_BIT };
        VkSubmitInfo last = { VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &secondary };
        CHECK(vkAllocateCommandBuffers(device, &shown_info, &secondary));
        CHECK(vkBeginCommandBuffer(secondary, &begin));
        vkCmdPipelineBarrier(secondary, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &shown, 0, NULL, 0, NULL);
        CHECK(vkEndCommandBuffer(secondary));
        CHECK(vkQueueSubmit(i ? second_queue : queue, 1, &last, VK_NULL_HANDLE));
        CHECK(vkDeviceWaitIdle(device));
    }
    for (int i = 0; i < 3; i++) printf("%u ", contents[(i << 14) + 1]);
    printf("%u\n", contents[17]);
    return 0;
}
