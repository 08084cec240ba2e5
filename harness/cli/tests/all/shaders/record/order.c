/* Two commands with an order between them. Arguments: the module, the first command, the order, the second command.
 *
 * Commands: ab, bc, ... dispatches that read the first buffer and write the second (ab+: from word 16 on), fill-X, copy-XY, indirect-XY
 * (the grid is in X). a, b and c are three buffers; d has the memory of b. Orders: none, submit (two submissions), semaphore, fence, or
 * a barrier, FROM_STAGES:FROM_ACCESSES:TO_STAGES:TO_ACCESSES, each in hexadecimal, followed by @X if it is for buffer X alone, and by
 * an s if the first command is in a secondary command buffer. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define CHECK(call) if ((call) != VK_SUCCESS) { fprintf(stderr, "%s\n", #call); exit(3); }

static VkBuffer buffers[4];
static VkDescriptorSet sets[4][4];
static VkPipelineLayout layout;
static VkPipeline pipeline;

static void record_command(VkCommandBuffer commands, const char *command) {
    const char *dash = strchr(command, '-');
    const char *names = dash ? dash + 1 : command;
    if (strncmp(command, "fill", 4) == 0) {
        vkCmdFillBuffer(commands, buffers[names[0] - 'a'], 0, VK_WHOLE_SIZE, 1);
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

static void record_order(VkCommandBuffer commands, const char *order) {
    unsigned long long from, from_access, to, to_access;
    if (sscanf(order, "%llx:%llx:%llx:%llx", &from, &from_access, &to, &to_access) != 4) return;
    const char *at = strchr(order, '@');
    VkMemoryBarrier memory = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, (uint32_t)from_access, (uint32_t)to_access };
    VkBufferMemoryBarrier buffer = { VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, NULL, (uint32_t)from_access, (uint32_t)to_access,
        VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, at ? buffers[at[1] - 'a'] : VK_NULL_HANDLE, 0, VK_WHOLE_SIZE };
    vkCmdPipelineBarrier(commands, (uint32_t)from, (uint32_t)to, 0, at ? 0 : 1, &memory, at ? 1 : 0, &buffer, 0, NULL);
}

int main(int count, char **arguments) {
    static uint32_t code[1 << 16];
    FILE *file = count == 5 ? fopen(arguments[1], "rb") : NULL;
    if (!file) return 3;
    size_t words = fread(code, 4, 1 << 16, file);
    const char *order = arguments[3];
    VkApplicationInfo application = { VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1 };
    VkInstanceCreateInfo instance_info = { VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application };
    VkInstance instance;
    CHECK(vkCreateInstance(&instance_info, NULL, &instance));
    VkPhysicalDevice physical;
    uint32_t one = 1;
    if (vkEnumeratePhysicalDevices(instance, &one, &physical) < 0 || one == 0) return 3;
    float priority = 1;
    VkDeviceQueueCreateInfo queue_info = { VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority };
    VkDeviceCreateInfo device_info = { VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue_info };
    VkDevice device;
    CHECK(vkCreateDevice(physical, &device_info, NULL, &device));
    VkQueue queue;
    vkGetDeviceQueue(device, 0, 0, &queue);

    VkPhysicalDeviceMemoryProperties memories;
    vkGetPhysicalDeviceMemoryProperties(physical, &memories);
    uint32_t type = 0, wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    while ((memories.memoryTypes[type].propertyFlags & wanted) != wanted) type++;
    VkMemoryAllocateInfo memory_info = { VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, 3 << 16, type };
    VkDeviceMemory memory;
    CHECK(vkAllocateMemory(device, &memory_info, NULL, &memory));
    for (int i = 0; i < 4; i++) {
        VkBufferCreateInfo buffer_info = { VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 256, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT };
        CHECK(vkCreateBuffer(device, &buffer_info, NULL, &buffers[i]));
        VkMemoryRequirements needed;
        vkGetBufferMemoryRequirements(device, buffers[i], &needed);
        CHECK(vkBindBufferMemory(device, buffers[i], memory, (VkDeviceSize)(i == 3 ? 1 : i) << 16));
    }
    uint32_t *contents;
    CHECK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&contents));
    for (int i = 0; i < 3 << 14; i++) contents[i] = 1;

    VkDescriptorSetLayoutBinding bindings[2] = { { 0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL },
                                                 { 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL } };
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
    CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline_info, NULL, &pipeline));

    VkCommandPoolCreateInfo command_pool_info = { VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO };
    VkCommandPool command_pool;
    CHECK(vkCreateCommandPool(device, &command_pool_info, NULL, &command_pool));
    VkCommandBufferAllocateInfo commands_info = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = command_pool, .commandBufferCount = 2 };
    VkCommandBuffer commands[2], secondary;
    CHECK(vkAllocateCommandBuffers(device, &commands_info, commands));
    commands_info.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
    commands_info.commandBufferCount = 1;
    CHECK(vkAllocateCommandBuffers(device, &commands_info, &secondary));
    VkCommandBufferInheritanceInfo inherited = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO };
    VkCommandBufferBeginInfo begin = { VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .pInheritanceInfo = &inherited };
    int has_secondary = order[strlen(order) - 1] == 's', is_split = strncmp(order, "submit", 6) == 0 || order[0] == 's' || strncmp(order, "fence", 5) == 0;
    CHECK(vkBeginCommandBuffer(commands[0], &begin));
    if (has_secondary) {
        CHECK(vkBeginCommandBuffer(secondary, &begin));
        record_command(secondary, arguments[2]);
        CHECK(vkEndCommandBuffer(secondary));
        vkCmdExecuteCommands(commands[0], 1, &secondary);
    } else {
        record_command(commands[0], arguments[2]);
    }
    if (!is_split) {
        record_order(commands[0], order);
        record_command(commands[0], arguments[4]);
    }
    CHECK(vkEndCommandBuffer(commands[0]));
    CHECK(vkBeginCommandBuffer(commands[1], &begin));
    if (is_split) record_command(commands[1], arguments[4]);
    CHECK(vkEndCommandBuffer(commands[1]));

    VkSemaphoreCreateInfo semaphore_info = { VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO };
    VkSemaphore semaphore;
    CHECK(vkCreateSemaphore(device, &semaphore_info, NULL, &semaphore));
    VkFenceCreateInfo fence_info = { VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    VkFence fence;
    CHECK(vkCreateFence(device, &fence_info, NULL, &fence));
    uint32_t uses_semaphore = strcmp(order, "semaphore") == 0;
    VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkSubmitInfo first = { VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands[0],
        .signalSemaphoreCount = uses_semaphore, .pSignalSemaphores = &semaphore };
    VkSubmitInfo second = { VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands[1],
        .waitSemaphoreCount = uses_semaphore, .pWaitSemaphores = &semaphore, .pWaitDstStageMask = &stages };
    CHECK(vkQueueSubmit(queue, 1, &first, fence));
    if (strcmp(order, "fence") == 0) CHECK(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
    if (is_split) CHECK(vkQueueSubmit(queue, 1, &second, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(queue));
    for (int i = 0; i < 3; i++) printf("%u ", contents[(i << 14) + 1]);
    printf("%u\n", contents[17]);
    return 0;
}
