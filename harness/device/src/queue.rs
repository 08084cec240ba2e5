//! Assigns the queues of a plan to queues of a device.

use std::time::Duration;

use ash::vk;
use plan::{DeviceError, Queue};

use crate::error::call_error;
use crate::physical::ComputeFamily;

/// A queue of the device: its family and index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueIndex {
    pub(crate) family: ComputeFamily,
    pub(crate) index: u32,
}

/// The objects of one queue of a prepared plan; handles are null before [`PreparedQueue::create`].
pub(crate) struct PreparedQueue {
    index: QueueIndex,
    pub(crate) raw: vk::Queue,
    pool: vk::CommandPool,
    /// Signalled when the last submission, and so all earlier ones, have ended.
    pub(crate) fence: vk::Fence,
    /// Two timestamps, if the family has a clock.
    pub(crate) clock: Option<vk::QueryPool>,
}

/// Assigns a distinct device queue to every queue of a plan, one device family for each family number.
///
/// Families in `draws` come first, then those that need the most queues. Several queues get a device family
/// without graphics if one fits: NVIDIA's driver executes the queues of its graphics family one after another.
pub(crate) fn assign_queues(
    queues: &[Queue],
    draws: &[u32],
    families: &[ComputeFamily],
) -> Result<Vec<QueueIndex>, DeviceError> {
    let demand = |number: u32| queues.iter().filter(|queue| queue.family == number).count();
    let mut numbers: Vec<u32> = Vec::new();
    for queue in queues {
        if !numbers.contains(&queue.family) {
            numbers.push(queue.family);
        }
    }
    if numbers.len() > families.len() {
        return Err(DeviceError::Unsupported(format!(
            "{} queue families with compute (it has {})",
            numbers.len(),
            families.len()
        )));
    }
    numbers.sort_by_key(|number| std::cmp::Reverse((draws.contains(number), demand(*number))));
    let mut free: Vec<ComputeFamily> = families.to_vec();
    let mut chosen: Vec<(u32, ComputeFamily)> = Vec::new();
    for number in numbers {
        let needed = demand(number);
        let draws = draws.contains(&number);
        let fits = |family: &ComputeFamily| family.queues as usize >= needed && (family.graphics || !draws);
        let is_serial = |at: &usize| free.get(*at).is_some_and(|family| needed > 1 && family.graphics);
        let fitting = (0..free.len()).filter(|at| free.get(*at).is_some_and(fits));
        let Some(found) = fitting.min_by_key(is_serial) else {
            let kind = if draws { "compute and graphics" } else { "compute" };
            return Err(DeviceError::Unsupported(format!("{needed} {kind} queues in one queue family")));
        };
        chosen.push((number, free.remove(found)));
    }
    let mut used: Vec<u32> = vec![0; chosen.len()];
    let mut places = Vec::new();
    for queue in queues {
        let assignment = chosen.iter().zip(&mut used).find(|((number, _), _)| *number == queue.family);
        if let Some(((_, family), used)) = assignment {
            places.push(QueueIndex { family: *family, index: *used });
            *used += 1;
        }
    }
    Ok(places)
}

impl PreparedQueue {
    pub(crate) fn new(place: QueueIndex) -> PreparedQueue {
        PreparedQueue {
            index: place,
            raw: vk::Queue::null(),
            pool: vk::CommandPool::null(),
            fence: vk::Fence::null(),
            clock: None,
        }
    }

    pub(crate) fn family_index(&self) -> u32 {
        self.index.family.index
    }

    pub(crate) fn create(&mut self, raw: &ash::Device) -> Result<(), DeviceError> {
        let family = self.index.family;
        // SAFETY: every compute queue of the device was requested at its creation.
        self.raw = unsafe { raw.get_device_queue(family.index, self.index.index) };
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
            .queue_family_index(family.index);
        // SAFETY: the family is one of the device's.
        self.pool =
            unsafe { raw.create_command_pool(&info, None) }.map_err(call_error("vkCreateCommandPool"))?;
        // SAFETY: the device lives.
        self.fence = unsafe { raw.create_fence(&vk::FenceCreateInfo::default(), None) }
            .map_err(call_error("vkCreateFence"))?;
        if family.timestamp_bits > 0 {
            let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(2);
            // SAFETY: the device lives.
            let clock = unsafe { raw.create_query_pool(&info, None) };
            self.clock = Some(clock.map_err(call_error("vkCreateQueryPool"))?);
        }
        Ok(())
    }

    pub(crate) fn allocate_commands(&self, raw: &ash::Device) -> Result<vk::CommandBuffer, DeviceError> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is this device's.
        let allocated = unsafe { raw.allocate_command_buffers(&info) };
        let allocated = allocated.map_err(call_error("vkAllocateCommandBuffers"))?;
        allocated.first().copied().ok_or(DeviceError::OutOfMemory("vkAllocateCommandBuffers"))
    }

    /// Returns the time between the two timestamps; a tick takes `period` nanoseconds.
    ///
    /// The submission has ended. Missing timestamps mean that the device did not execute it, which other
    /// checks report.
    pub(crate) fn elapsed_time(
        &self,
        raw: &ash::Device,
        period: f32,
    ) -> Result<Option<Duration>, DeviceError> {
        let Some(clock) = self.clock else { return Ok(None) };
        let mut ticks = [0_u64; 2];
        let flags = vk::QueryResultFlags::TYPE_64;
        // SAFETY: the pool has two queries, both written by the submission that has ended.
        match unsafe { raw.get_query_pool_results(clock, 0, &mut ticks, flags) } {
            Err(vk::Result::NOT_READY) => return Ok(None),
            answer => answer.map_err(call_error("vkGetQueryPoolResults"))?,
        }
        let [start, end] = ticks;
        let mask = u64::MAX >> (64 - self.index.family.timestamp_bits.clamp(1, 64));
        let nanoseconds = (end.wrapping_sub(start) & mask) as f64 * f64::from(period);
        Ok(Some(Duration::from_nanos(nanoseconds as u64)))
    }

    /// Destroys all objects. Nothing may be in flight.
    pub(crate) fn destroy(&self, raw: &ash::Device) {
        // SAFETY: the objects belong to this device or are null, and no submission uses them; the pool owns
        // its command buffers.
        unsafe {
            raw.destroy_query_pool(self.clock.unwrap_or_default(), None);
            raw.destroy_fence(self.fence, None);
            raw.destroy_command_pool(self.pool, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_of_a_plan_has_a_separate_device_queue() {
        // Queue counts of the families of the device (the first has graphics), families of the queues in the
        // plan, families that draw, and the expected family and index of each queue, or the error.
        type Case =
            (&'static [u32], &'static [u32], &'static [u32], Result<&'static [(u32, u32)], &'static str>);
        let table: [Case; 12] = [
            (&[1], &[0], &[], Ok(&[(0, 0)])),
            (&[1], &[], &[], Ok(&[])),
            (&[1, 8], &[5, 3], &[], Ok(&[(0, 0), (1, 0)])),
            (&[1, 8], &[0, 0], &[], Ok(&[(1, 0), (1, 1)])),
            (&[16, 1], &[0, 7, 7], &[], Ok(&[(1, 0), (0, 0), (0, 1)])),
            (&[16, 8], &[0, 0], &[], Ok(&[(1, 0), (1, 1)])),
            (&[2, 2], &[4, 9, 4, 9], &[], Ok(&[(1, 0), (0, 0), (1, 1), (0, 1)])),
            (&[8], &[0, 1], &[], Err("2 queue families with compute (it has 1)")),
            (&[2, 1], &[0, 0, 1, 1], &[], Err("2 compute queues in one queue family")),
            (&[1, 8], &[0], &[0], Ok(&[(0, 0)])),
            (&[1, 8], &[3, 5, 5], &[3], Ok(&[(0, 0), (1, 0), (1, 1)])),
            (&[1, 8], &[0, 0], &[0], Err("2 compute and graphics queues in one queue family")),
        ];
        for (families, wanted, draws, expected) in table {
            let families: Vec<_> = (0..)
                .zip(families)
                .map(|(index, queues)| ComputeFamily {
                    index,
                    queues: *queues,
                    timestamp_bits: 0,
                    graphics: index == 0,
                })
                .collect();
            let queues: Vec<_> = wanted.iter().map(|family| Queue { family: *family }).collect();
            let places: Result<Vec<_>, _> = assign_queues(&queues, draws, &families)
                .map(|places| places.iter().map(|place| (place.family.index, place.index)).collect());
            let expected =
                expected.map(<[_]>::to_vec).map_err(|lack| DeviceError::Unsupported(lack.to_owned()));
            assert_eq!(places, expected, "{wanted:?}");
        }
    }
}
