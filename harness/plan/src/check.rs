//! Validation of plans: internal consistency, and the device capabilities that they need.

mod hosts;

use crate::{
    AccessMask, BufferId, BufferMemory, Capabilities, DependencyKind, DeviceError, Drawing, Feature, HostAct,
    Image, ImageId, ImageShape, Interface, Kernel, KernelId, KernelStage, Plan, PlanStep, QueueId, Semaphore,
    StageMask, Subgroups, interface::UNIFORM_BYTES,
};

const SPIRV_MAGIC: u32 = 0x0723_0203;
const SPIRV_HEADER_WORDS: usize = 5;
const OP_EXECUTION_MODE: u32 = 16;
const MODE_LOCAL_SIZE: u32 = 17;

impl Plan {
    /// Checks that the plan is internally consistent: all indices are valid and sizes agree.
    ///
    /// # Errors
    ///
    /// [`DeviceError::InvalidPlan`] with the first contradiction.
    pub fn validate(&self) -> Result<(), DeviceError> {
        if self.queues.is_empty() {
            return Err(invalid_plan("no queue"));
        }
        for (number, kernel) in self.kernels.iter().enumerate() {
            kernel.validate().map_err(|why| invalid_plan(format!("kernel {number}: {why}")))?;
        }
        for (number, buffer) in self.buffers.iter().enumerate() {
            if buffer.words == 0 {
                return Err(invalid_plan(format!("buffer {number} ({}) is empty", buffer.name)));
            }
        }
        for (number, image) in self.images.iter().enumerate() {
            let invalid = |why| invalid_plan(format!("image {number} ({}): {why}", image.name));
            match image.shape {
                ImageShape::Texels(buffer) => self.require_buffer(buffer).map_err(invalid)?,
                shape if shape.texel_count() == 0 => return Err(invalid("it is empty".to_owned())),
                _ => {}
            }
        }
        for (number, kernel) in self.kernels.iter().enumerate() {
            let images = kernel.images.iter().try_for_each(|image| self.image_shape(*image).map(|_| ()));
            images
                .and_then(|()| kernel.addresses.iter().try_for_each(|buffer| self.require_buffer(*buffer)))
                .map_err(|why| invalid_plan(format!("kernel {number}: {why}")))?;
        }
        for (number, step) in self.steps.iter().enumerate() {
            self.validate_step(step).map_err(|why| invalid_plan(format!("step {number}: {why}")))?;
        }
        self.validate_hosts().map_err(invalid_plan)?;
        self.validate_events().map_err(invalid_plan)?;
        for buffer in (0..).take(self.buffers.len()).map(BufferId) {
            self.validate_owners(buffer)
                .map_err(|why| invalid_plan(format!("buffer {}: {why}", buffer.0)))?;
        }
        for number in 0..self.semaphores.len() {
            self.validate_semaphore(number)
                .map_err(|why| invalid_plan(format!("semaphore {number}: {why}")))?;
        }
        Ok(())
    }

    /// Checks that a submission restores every semaphore and that every wait ends.
    ///
    /// A binary semaphore has one signal, then one wait. The values of a timeline rise, and each wait follows
    /// a signal that ends it.
    fn validate_semaphore(&self, number: usize) -> Result<(), String> {
        let uses: Vec<(bool, u32)> = self
            .steps
            .iter()
            .filter_map(|step| match step {
                PlanStep::Signal { semaphore, value, .. } if semaphore.0 as usize == number => {
                    Some((true, *value))
                }
                PlanStep::Wait { semaphore, value, .. } if semaphore.0 as usize == number => {
                    Some((false, *value))
                }
                _ => None,
            })
            .collect();
        if self.semaphores.get(number) == Some(&Semaphore::Timeline) {
            if self.hosts.is_some() {
                return self.validate_timeline_of_hosts(number, &uses);
            }
            let mut reached = 0;
            for (signal, value) in &uses {
                match signal {
                    true if *value <= reached => return Err("its values do not increase".to_owned()),
                    true => reached = *value,
                    false if *value == 0 || *value > reached => {
                        return Err("a wait before its signal".to_owned());
                    }
                    false => {}
                }
            }
            return Ok(());
        }
        if uses == [(true, 1), (false, 1)] {
            Ok(())
        } else {
            Err("needs one signal, then one wait".to_owned())
        }
    }

    /// Checks a timeline that host threads use. Batches may then wait for later signals, but each wait needs
    /// a signal that ends it.
    fn validate_timeline_of_hosts(&self, number: usize, uses: &[(bool, u32)]) -> Result<(), String> {
        let acts = self.hosts.iter().flat_map(|hosts| &hosts.threads).flat_map(|thread| &thread.acts);
        let of_hosts = acts.filter_map(|act| match act {
            HostAct::Signal { semaphore, value } if semaphore.0 as usize == number => Some((true, *value)),
            HostAct::Await { semaphore, value } if semaphore.0 as usize == number => Some((false, *value)),
            _ => None,
        });
        let uses: Vec<(bool, u32)> = uses.iter().copied().chain(of_hosts).collect();
        let max = uses.iter().filter(|(signals, _)| *signals).map(|(_, value)| *value).max().unwrap_or(0);
        refuse_if(uses.iter().any(|(_, value)| *value == 0 || *value > max), || {
            "a wait without a signal".to_owned()
        })?;
        Ok(())
    }

    /// Checks that events are set once, then awaited on the same queue with the same scopes.
    fn validate_events(&self) -> Result<(), String> {
        let mut set: Vec<(u32, &PlanStep)> = Vec::new();
        for step in &self.steps {
            let PlanStep::Dependency { kind, .. } = step else { continue };
            match kind {
                DependencyKind::Barrier | DependencyKind::Event => {}
                DependencyKind::Set(event) if set.iter().any(|(other, _)| other == event) => {
                    return Err(format!("event {event} is set twice"));
                }
                DependencyKind::Set(event) => set.push((*event, step)),
                DependencyKind::Await(event) => {
                    let own = set.iter().find(|(other, _)| other == event);
                    refuse_if(
                        !own.is_some_and(|(_, set)| dependency_scopes(set) == dependency_scopes(step)),
                        || format!("event {event} is not set before, on this queue and for this"),
                    )?;
                }
            }
        }
        Ok(())
    }

    fn queue_family(&self, queue: QueueId) -> Option<u32> {
        self.queues.get(queue.0 as usize).map(|queue| queue.family)
    }

    /// Returns true if a buffer has exclusive ownership by one queue family at a time.
    pub fn has_owner(&self, buffer: BufferId) -> bool {
        self.steps.iter().any(|step| matches!(step, PlanStep::Release { buffer: own, .. } if *own == buffer))
    }

    /// Returns true if a step accesses the contents of a buffer.
    fn uses_buffer(&self, step: &PlanStep, buffer: BufferId) -> bool {
        let texels = |image: &ImageId| self.image_shape(*image) == Ok(ImageShape::Texels(buffer));
        match step {
            PlanStep::Fill { buffer: own, .. }
            | PlanStep::ToHost { buffer: own, .. }
            | PlanStep::ToImage { from: own, .. }
            | PlanStep::FromImage { to: own, .. } => *own == buffer,
            PlanStep::Copy { from, to, .. } => *from == buffer || *to == buffer,
            PlanStep::Dispatch { kernel, bindings, .. } | PlanStep::Draw { kernel, bindings, .. } => {
                let kernel = self.kernels.get(kernel.0 as usize);
                bindings.contains(&buffer)
                    || kernel.is_some_and(|kernel| {
                        kernel.addresses.contains(&buffer) || kernel.images.iter().any(texels)
                    })
            }
            _ => false,
        }
    }

    /// Checks queue family ownership in step order.
    ///
    /// Only the owner accesses a buffer, each acquire has its release, and at the end the first owner owns
    /// the buffer again.
    fn validate_owners(&self, buffer: BufferId) -> Result<(), String> {
        if !self.has_owner(buffer) {
            let acquired =
                |step: &PlanStep| matches!(step, PlanStep::Acquire { buffer: own, .. } if *own == buffer);
            let any = self.steps.iter().any(acquired);
            return if any { Err("its ownership is acquired but not released".to_owned()) } else { Ok(()) };
        }
        // The owner; or the releasing and the acquiring family of a transfer in progress.
        let (mut first, mut owner, mut transfer) = (None, None, None);
        for (number, step) in self.steps.iter().enumerate() {
            let family = self.queue_family(step.queue());
            let wrong = |what: &str| Err(format!("{what} in step {number}"));
            match step {
                PlanStep::Acquire { buffer: own, from, .. } if *own == buffer => {
                    if transfer.take() != Some((self.queue_family(*from), family)) {
                        return wrong("its ownership has not been released to the queue family");
                    }
                    owner = family;
                }
                PlanStep::Release { buffer: own, .. } if *own == buffer => {}
                step if self.uses_buffer(step, buffer) => {}
                _ => continue,
            }
            first = first.or(family);
            owner = owner.or(if transfer.is_none() { family } else { None });
            if owner != family {
                return wrong("a queue family that does not own it");
            }
            if let PlanStep::Release { to, .. } = step {
                (owner, transfer) = (None, Some((family, self.queue_family(*to))));
            }
        }
        if owner == first { Ok(()) } else { Err("its last owner is not its first".to_owned()) }
    }

    fn validate_step(&self, step: &PlanStep) -> Result<(), String> {
        self.require_queue(step.queue())?;
        match step {
            PlanStep::Fill { buffer, .. } | PlanStep::ToHost { buffer, .. } => self.require_buffer(*buffer),
            PlanStep::Release { buffer, to: other, .. } | PlanStep::Acquire { buffer, from: other, .. } => {
                self.require_queue(*other)?;
                refuse_if(self.queue_family(*other) == self.queue_family(step.queue()), || {
                    "a transfer of ownership within a queue family".to_owned()
                })?;
                self.require_buffer(*buffer)
            }
            PlanStep::Copy { from, to, .. } => {
                self.require_buffer(*from)?;
                self.require_buffer(*to)?;
                let words =
                    |buffer: &BufferId| self.buffers.get(buffer.0 as usize).map(|buffer| buffer.words);
                refuse_if(from == to, || format!("a copy of buffer {} to itself", from.0))?;
                refuse_if(words(to) < words(from), || {
                    format!("a copy of buffer {} to the smaller buffer {}", from.0, to.0)
                })?;
                Ok(())
            }
            PlanStep::ToImage { from: buffer, to: image, .. }
            | PlanStep::FromImage { from: image, to: buffer, .. } => {
                self.require_buffer(*buffer)?;
                if let ImageShape::Texels(_) = self.image_shape(*image)? {
                    return Err(format!("image {} is a texel buffer", image.0));
                }
                let expected = self.images.get(image.0 as usize).map_or(0, Image::words);
                let words = self.buffers.get(buffer.0 as usize).map_or(0, |buffer| buffer.words);
                refuse_if(words < expected, || {
                    format!("buffer {} has fewer words than image {} texels", buffer.0, image.0)
                })?;
                Ok(())
            }
            PlanStep::Dispatch { kernel, workgroups, bindings, push_constants, .. } => {
                refuse_if(*workgroups == 0, || "a dispatch without workgroups".to_owned())?;
                self.validate_use(*kernel, true, bindings, push_constants)
            }
            PlanStep::Draw { kernel, drawing, bindings, push_constants, .. } => {
                drawing.validate()?;
                self.validate_use(*kernel, false, bindings, push_constants)
            }
            PlanStep::Signal { semaphore, .. } | PlanStep::Wait { semaphore, .. } => {
                let found = (semaphore.0 as usize) < self.semaphores.len();
                found.then_some(()).ok_or_else(|| format!("no semaphore {}", semaphore.0))
            }
            // VUID-vkCmdSetEvent-stageMask-01149
            PlanStep::Dependency { kind, stages, available, .. }
                if *kind != DependencyKind::Barrier
                    && (available.intersects(AccessMask::HOST) || stages.0.intersects(StageMask::HOST)) =>
            {
                Err("an event that the device sets after host accesses".to_owned())
            }
            PlanStep::Dependency { stages, available, visible, .. }
                if !(stages.0.supports_accesses(*available) && stages.1.supports_accesses(*visible)) =>
            {
                Err("a dependency with accesses that none of its stages performs".to_owned())
            }
            PlanStep::Barrier { .. }
            | PlanStep::ExecutionBarrier { .. }
            | PlanStep::Dependency { .. }
            | PlanStep::CommandBuffer { .. }
            | PlanStep::Submit { .. }
            | PlanStep::Hosts { .. }
            | PlanStep::Batch { .. }
            | PlanStep::HostsEnd { .. }
            | PlanStep::HostWait { .. } => Ok(()),
        }
    }

    /// Checks the arguments of a dispatch or a draw against its kernel.
    fn validate_use(
        &self,
        kernel: KernelId,
        is_dispatch: bool,
        bindings: &[BufferId],
        push_constants: &[u8],
    ) -> Result<(), String> {
        let number = kernel.0;
        let kernel = usize::try_from(number).ok().and_then(|index| self.kernels.get(index));
        let kernel = kernel.ok_or_else(|| format!("no kernel {number}"))?;
        if kernel.stage.has_workgroups() != is_dispatch {
            let what = if is_dispatch { "a dispatch" } else { "a draw" };
            return Err(format!("{what} of kernel {number}, which has another stage"));
        }
        refuse_if(bindings.len() as u64 != u64::from(kernel.bindings), || {
            format!("{} buffers for the {} bindings of kernel {number}", bindings.len(), kernel.bindings)
        })?;
        refuse_if(push_constants.len() as u64 != u64::from(kernel.push_constant_bytes), || {
            format!(
                "{} bytes of push constants where kernel {number} takes {}",
                push_constants.len(),
                kernel.push_constant_bytes
            )
        })?;
        bindings.iter().try_for_each(|buffer| self.require_buffer(*buffer))
    }

    /// Returns the graphics stages that run on a queue. If there are any, its family needs graphics.
    pub fn graphics_stages(&self, queue: QueueId) -> StageMask {
        let kernels = self.steps.iter().filter_map(|step| match step {
            PlanStep::Dispatch { queue: own, kernel, .. } | PlanStep::Draw { queue: own, kernel, .. }
                if *own == queue =>
            {
                self.kernels.get(kernel.0 as usize)
            }
            _ => None,
        });
        kernels.fold(StageMask::NONE, |all, kernel| all.with(kernel.stage.as_set().graphics_stages()))
    }

    fn require_queue(&self, queue: QueueId) -> Result<(), String> {
        let found = (queue.0 as usize) < self.queues.len();
        found.then_some(()).ok_or_else(|| format!("no queue {}", queue.0))
    }

    fn image_shape(&self, image: ImageId) -> Result<ImageShape, String> {
        let found = self.images.get(image.0 as usize).map(|image| image.shape);
        found.ok_or_else(|| format!("no image {}", image.0))
    }

    fn require_buffer(&self, buffer: BufferId) -> Result<(), String> {
        let found = (buffer.0 as usize) < self.buffers.len();
        found.then_some(()).ok_or_else(|| format!("no buffer {}", buffer.0))
    }
}

/// Returns the queue of a dependency with its stages and accesses.
fn dependency_scopes(step: &PlanStep) -> Option<(QueueId, (StageMask, StageMask), AccessMask, AccessMask)> {
    match step {
        PlanStep::Dependency { queue, stages, available, visible, .. } => {
            Some((*queue, *stages, *available, *visible))
        }
        _ => None,
    }
}

impl PlanStep {
    /// Returns the queue that executes the step.
    pub fn queue(&self) -> QueueId {
        match self {
            PlanStep::Fill { queue, .. }
            | PlanStep::Copy { queue, .. }
            | PlanStep::ToImage { queue, .. }
            | PlanStep::FromImage { queue, .. }
            | PlanStep::Dispatch { queue, .. }
            | PlanStep::Draw { queue, .. }
            | PlanStep::Barrier { queue }
            | PlanStep::ExecutionBarrier { queue }
            | PlanStep::Dependency { queue, .. }
            | PlanStep::Release { queue, .. }
            | PlanStep::Acquire { queue, .. }
            | PlanStep::CommandBuffer { queue }
            | PlanStep::Submit { queue }
            | PlanStep::Signal { queue, .. }
            | PlanStep::Wait { queue, .. }
            | PlanStep::HostWait { queue }
            | PlanStep::Hosts { queue }
            | PlanStep::Batch { queue, .. }
            | PlanStep::HostsEnd { queue }
            | PlanStep::ToHost { queue, .. } => *queue,
        }
    }
}

impl Drawing {
    /// Checks that the draw is not empty and within the limits of every device.
    ///
    /// # Errors
    ///
    /// A description of the violation.
    pub fn validate(&self) -> Result<(), String> {
        let (width, height) = self.extent;
        let most = Drawing::VIEWPORT_SIZE;
        refuse_if(self.points == 0 || width == 0 || height == 0, || "a draw without vertices".to_owned())?;
        refuse_if(width > most || height > most, || {
            format!("a draw of {width} by {height} pixels, more than {most}")
        })?;
        Ok(())
    }
}

impl Kernel {
    /// Returns the size of a workgroup by the `LocalSize` execution mode; `None` without one.
    pub fn workgroup_size(&self) -> Option<[u32; 3]> {
        let mut rest = self.words.get(SPIRV_HEADER_WORDS..)?;
        while let Some(first) = rest.first() {
            let (count, opcode) = ((first >> 16) as usize, first & 0xffff);
            let instruction = rest.get(..count.max(1))?;
            if let (OP_EXECUTION_MODE, [_, _, MODE_LOCAL_SIZE, x, y, z]) = (opcode, instruction) {
                return Some([*x, *y, *z]);
            }
            rest = rest.get(count.max(1)..)?;
        }
        None
    }

    fn validate(&self) -> Result<(), String> {
        refuse_if(
            self.words.len() <= SPIRV_HEADER_WORDS || self.words.first() != Some(&SPIRV_MAGIC),
            || "its words are not a SPIR-V module".to_owned(),
        )?;
        refuse_if(!self.push_constant_bytes.is_multiple_of(4), || {
            format!("{} bytes of push constants are not a multiple of a word", self.push_constant_bytes)
        })?;
        refuse_if(
            self.stage.vertex_shader().is_some_and(|vertex| vertex.first() != Some(&SPIRV_MAGIC)),
            || "the words of its vertex shader are not a SPIR-V module".to_owned(),
        )?;
        refuse_if(self.stage.mesh_shader().is_some_and(|mesh| mesh.first() != Some(&SPIRV_MAGIC)), || {
            "the words of its mesh shader are not a SPIR-V module".to_owned()
        })?;
        if let Some(interface) = &self.interface {
            interface.validate()?;
            refuse_if(interface.bindings.len() as u64 != u64::from(self.bindings), || {
                format!("an interface of {} bindings for {} buffers", interface.bindings.len(), self.bindings)
            })?;
            refuse_if(interface.images.len() != self.images.len(), || {
                format!("an interface of {} images for {} images", interface.images.len(), self.images.len())
            })?;
            refuse_if(self.stage != KernelStage::Compute || !self.addresses.is_empty(), || {
                "an interface together with addresses or another stage".to_owned()
            })?;
        }
        match self.subgroups.required_size() {
            Some(size) if !size.is_power_of_two() => Err(format!("a subgroup size of {size}")),
            _ => Ok(()),
        }
    }
}

impl Capabilities {
    /// Checks that the device supports a plan that passed [`Plan::validate`].
    ///
    /// It does not check the features that the kernels use, nor the assignment of queues to queue families.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unsupported`] with the first missing capability.
    pub fn check_plan(&self, plan: &Plan) -> Result<(), DeviceError> {
        for buffer in &plan.buffers {
            let max = self.max_storage_buffer_bytes / 4;
            check_limit(buffer.words, max, || format!("words in a storage buffer ({})", buffer.name))?;
        }
        let memories = plan.buffers.iter().map(|buffer| buffer.memory);
        for memory in memories.chain(plan.images.iter().map(|image| image.memory)) {
            if let BufferMemory::Typed(kind) | BufferMemory::Mapped(kind) = memory
                && !self.memory_types.iter().any(|properties| kind.matches_type(*properties))
            {
                return Err(DeviceError::Unsupported(kind.to_string()));
            }
        }
        for kernel in &plan.kernels {
            self.check_kernel(kernel)?;
        }
        unsupported_if(
            plan.semaphores.contains(&Semaphore::Timeline) && !self.has_feature(Feature::TimelineSemaphore),
            || Feature::TimelineSemaphore.to_string(),
        )?;
        for step in &plan.steps {
            if let PlanStep::Dispatch { workgroups, kernel, bindings, .. } = step {
                self.check_uniform(plan, *kernel, bindings)?;
                check_limit((*workgroups).into(), self.max_workgroups.into(), || {
                    "workgroups in a dispatch".to_owned()
                })?;
            }
        }
        Ok(())
    }

    /// Uniform buffers have a separate limit.
    fn check_uniform(&self, plan: &Plan, kernel: KernelId, buffers: &[BufferId]) -> Result<(), DeviceError> {
        let kernel = plan.kernels.get(kernel.0 as usize);
        let Some(interface) = kernel.and_then(|kernel| kernel.interface.as_ref()) else { return Ok(()) };
        for (bound, buffer) in interface.bindings.iter().zip(buffers).filter(|(bound, _)| bound.uniform) {
            let words = plan.buffers.get(buffer.0 as usize).map_or(0, |buffer| buffer.words);
            let name = || format!("bytes in the uniform buffer {}.{}", bound.set, bound.binding);
            check_limit(words.saturating_mul(4), UNIFORM_BYTES, name)?;
        }
        Ok(())
    }

    fn check_kernel(&self, kernel: &Kernel) -> Result<(), DeviceError> {
        let lacks = |feature: &&Feature| !self.has_feature(**feature);
        if let Some(feature) = kernel.stage.required_features().iter().find(lacks) {
            return Err(DeviceError::Unsupported(feature.to_string()));
        }
        unsupported_if(kernel.stage != KernelStage::Compute && self.graphics_queues.is_empty(), || {
            "a queue with graphics and compute".to_owned()
        })?;
        let uniform = kernel.interface.iter().flat_map(|interface| &interface.bindings);
        let uniform = uniform.filter(|bound| bound.uniform).count() as u64;
        check_limit(u64::from(kernel.bindings) - uniform, self.max_storage_buffers.into(), || {
            "storage buffers of a kernel".to_owned()
        })?;
        if let Some(requirement) = kernel.interface.as_ref().and_then(Interface::missing_requirement) {
            return Err(DeviceError::Unsupported(requirement));
        }
        let pushed = u64::from(kernel.push_constant_bytes) + 8 * kernel.addresses.len() as u64;
        check_limit(pushed, self.max_push_constant_bytes.into(), || "bytes of push constants".to_owned())?;
        let size = kernel.workgroup_size();
        if let Some([x, y, z]) = size {
            let invocations = u64::from(x).saturating_mul(y.into()).saturating_mul(z.into());
            check_limit(invocations, self.max_workgroup_invocations.into(), || {
                "invocations in a workgroup".to_owned()
            })?;
        }
        let has_control = self.has_feature(Feature::SubgroupSizeControl);
        unsupported_if(kernel.subgroups == Subgroups::Varying && !has_control, || {
            Feature::SubgroupSizeControl.to_string()
        })?;
        let Some(subgroup_size) = kernel.subgroups.required_size() else { return Ok(()) };
        let (smallest, largest) = self.subgroup_size_range;
        unsupported_if(!self.full_subgroups || !(smallest..=largest).contains(&subgroup_size), || {
            format!("full subgroups of {subgroup_size} invocations")
        })?;
        if let Some([x, y, z]) = size {
            if matches!(kernel.subgroups, Subgroups::Full(_)) && !x.is_multiple_of(subgroup_size) {
                return Err(DeviceError::InvalidPlan(format!(
                    "a workgroup of {x} invocations in x does not consist of full subgroups of \
                     {subgroup_size}"
                )));
            }
            let invocations = u64::from(x).saturating_mul(y.into()).saturating_mul(z.into());
            let max = u64::from(self.max_workgroup_subgroups).saturating_mul(subgroup_size.into());
            check_limit(invocations, max, || {
                format!("invocations in a workgroup of full subgroups of {subgroup_size}")
            })?;
        }
        Ok(())
    }
}

fn refuse_if(is_wrong: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if is_wrong { Err(why()) } else { Ok(()) }
}

fn unsupported_if(lacks: bool, what: impl FnOnce() -> String) -> Result<(), DeviceError> {
    if lacks { Err(DeviceError::Unsupported(what())) } else { Ok(()) }
}

fn check_limit(needed: u64, available: u64, what: impl Fn() -> String) -> Result<(), DeviceError> {
    unsupported_if(needed > available, || format!("{needed} {} (it has {available})", what()))
}

fn invalid_plan(why: impl Into<String>) -> DeviceError {
    DeviceError::InvalidPlan(why.into())
}
