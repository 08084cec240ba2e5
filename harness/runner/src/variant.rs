//! Variants: the forms in which a test runs, from the words after the `@` of its id.

use std::fmt;
use std::str::FromStr;

use plan::{BufferMemory, Capabilities, Feature, MemoryKind};
use shaders::carrier::Carrier;
use shaders::host::SubmissionStart;
use shaders::transform::KernelForm;
use shaders::variant::{SeparateStorages, SubgroupSize};
use shaders::{CompiledKernel, Pipelines, Program, Requirements};

use crate::join::Join;

/// The form in which a test runs. The default is one kernel for all concurrent threads, every [`Join`] in
/// turn between phases, and memory as the test declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RunVariant {
    /// `split`: the threads of each workgroup have their own pipeline, dispatched without synchronization in
    /// between.
    pub pipelines: Pipelines,
    /// A word of [`Join`]: the only mechanism between phases.
    pub join: Option<Join>,
    /// The form of kernels: words of [`shaders::variant`].
    pub shader: shaders::Variant,
    /// A word of [`MemoryKind::NAMED`]: the memory type of the locations. If `shader` separates locations, it
    /// applies to these, and the others are in device memory.
    pub memory: Option<MemoryKind>,
}

/// A text that is not a variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunVariantError {
    #[error("unknown variant `{0}`; expected one of {names}", names = RunVariant::words().collect::<Vec<_>>().join(", "))]
    Unknown(String),
    #[error("variant `{0}` has no effect in `{1}`: a later word repeats or replaces it; remove one of them")]
    WithoutEffect(String, String),
}

const SPLIT: &str = "split";
const NONLOCAL: &str = "nonlocal";
const NOTHING_TO_SEPARATE: &str = "no location to separate";

impl RunVariant {
    /// Applies words one after another.
    fn from_words<'w>(words: impl Iterator<Item = &'w str>) -> Result<RunVariant, RunVariantError> {
        let mut variant = RunVariant::default();
        for word in words {
            if word == SPLIT {
                variant.pipelines = Pipelines::Split;
            } else if let Some(kind) = MemoryKind::from_name(word) {
                variant.memory = Some(kind);
            } else if let Ok(shader) = word.parse() {
                variant.shader = variant.shader.overridden_by(shader);
                if variant.shader.separate_storages != SeparateStorages::None {
                    variant.memory = MemoryKind::from_name(NONLOCAL);
                }
            } else {
                let unknown = |_| RunVariantError::Unknown(word.to_owned());
                variant.join = Some(word.parse().map_err(unknown)?);
            }
        }
        Ok(variant)
    }

    pub fn words() -> impl Iterator<Item = &'static str> {
        std::iter::once(SPLIT)
            .chain(Join::ALL.map(Join::name))
            .chain(MemoryKind::NAMED.map(|(word, _)| word))
            .chain(shaders::variant::words().map(|(word, _)| word))
            .chain([KernelForm::EXAMPLE])
    }

    /// Returns the compile options of the variant.
    pub fn kernel_config(&self, config: shaders::KernelConfig) -> shaders::KernelConfig {
        let subgroup_size = match self.shader.subgroup_size {
            SubgroupSize::Smallest => config.subgroup_sizes.0,
            SubgroupSize::Largest => config.subgroup_sizes.1,
            SubgroupSize::Unspecified | SubgroupSize::Varying => config.subgroup_size,
        };
        shaders::KernelConfig { variant: self.shader, subgroup_size, ..config }
    }

    /// Returns the mechanisms to test between the phases of a program, on a device with these features.
    pub fn joins(&self, program: &Program, has: impl Fn(Feature) -> bool) -> Vec<Join> {
        let fits = |join: &Join| {
            join.required_feature(program).is_none_or(&has) && join.refusal_reason(program).is_none()
        };
        match self.join {
            Some(join) => vec![join],
            None => Join::ALL.into_iter().filter(fits).collect(),
        }
    }

    /// Returns the memory of a program's locations: that of the variant, else that of the test.
    pub fn location_memory(&self, program: &Program) -> BufferMemory {
        if let Some(hosts) = &program.hosts {
            let kind = MemoryKind::from_name(if hosts.is_noncoherent { "noncoherent" } else { "coherent" });
            return self.memory.or(kind).map_or(BufferMemory::Shared, BufferMemory::Mapped);
        }
        let declared = || {
            let any = |requires: fn(&Requirements) -> bool| {
                program.kernels().any(|kernel| requires(&kernel.requirements))
            };
            let noncoherent = any(|requirements| requirements.noncoherent).then_some("noncoherent");
            let visible = any(|requirements| requirements.host_visible).then_some("visible");
            noncoherent.or(visible).and_then(MemoryKind::from_name)
        };
        self.memory.or_else(declared).map_or(BufferMemory::Device, BufferMemory::Typed)
    }

    /// Returns why a device cannot run the variant, independent of the test; `None` if it can.
    pub fn refusal_reason(&self, capabilities: &Capabilities) -> Option<String> {
        let most = capabilities.max_workgroups;
        if let Some(workgroups) = self.shader.workgroup_count.workgroups().filter(|wanted| *wanted > most) {
            return Some(format!("{workgroups} workgroups in a dispatch (it has {most})"));
        }
        let is_offered =
            |kind: &MemoryKind| capabilities.memory_types.iter().any(|own| kind.matches_type(*own));
        self.memory.filter(|kind| !is_offered(kind)).map(|kind| kind.to_string())
    }

    /// Returns the missing capability of a device for a program; `None` if none is missing. `needs` are features that the
    /// test lists.
    pub fn missing_capability(
        &self,
        program: &Program,
        needs: &[String],
        capabilities: &Capabilities,
    ) -> Option<String> {
        let mut own =
            program.features().into_iter().chain(self.join.and_then(|join| join.required_feature(program)));
        if let Some(feature) = own.find(|feature| !capabilities.has_feature(*feature)) {
            return Some(feature.to_string());
        }
        if let Some(named) = needs.iter().find(|name| !capabilities.has_feature_named(name)) {
            return Some(named.clone());
        }
        let has_held_batch = program
            .hosts
            .iter()
            .flat_map(|hosts| &hosts.submission_starts)
            .any(|start| *start == SubmissionStart::Held);
        let timeline = Join::Timeline
            .required_feature(program)
            .filter(|_| has_held_batch && self.join != Some(Join::Calls));
        if let Some(feature) = timeline.filter(|feature| !capabilities.has_feature(*feature)) {
            return Some(feature.to_string());
        }
        if program.hosts.is_some() {
            if !capabilities.host_threads {
                return Some("host thread".to_owned());
            }
            if let Some(join) = self.join.filter(|join| *join != Join::Calls) {
                return Some(format!("{join} together with host threads"));
            }
            let kind = self.memory.filter(|kind| !kind.required.host_visible);
            if kind.is_some() {
                return Some("memory that host threads cannot access".to_owned());
            }
        }
        if let Some(missing) = missing_queues(&program.queues, &capabilities.compute_queues) {
            return Some(missing);
        }
        if self.join.is_none() && Join::ALL.iter().all(|join| join.refusal_reason(program).is_some()) {
            return Join::Fence.refusal_reason(program);
        }
        if let Some(missing) = program.kernels().find_map(|kernel| missing_graphics(kernel, capabilities)) {
            return Some(missing);
        }
        if let Some(missing) =
            program.kernels().find_map(|kernel| missing_subgroup_support(kernel, capabilities))
        {
            return Some(missing);
        }
        if let Some(refused) = self.join.and_then(|join| join.refusal_reason(program)) {
            return Some(refused);
        }
        if self.shader.separate_storages != SeparateStorages::None && program.separate_storages().is_empty() {
            return Some(NOTHING_TO_SEPARATE.to_owned());
        }
        match self.location_memory(program) {
            BufferMemory::Typed(memory) | BufferMemory::Mapped(memory) => {
                RunVariant { memory: Some(memory), ..*self }.refusal_reason(capabilities)
            }
            _ => None,
        }
        .or_else(|| missing_workgroup_memory(program, capabilities))
    }
}

/// Returns the missing capability of a device for queues of these families.
fn missing_queues(wanted: &[u32], families: &[u32]) -> Option<String> {
    let mut demands: Vec<u32> = Vec::new();
    for family in wanted {
        let family = *family as usize;
        demands.resize(demands.len().max(family + 1), 0);
        demands.iter_mut().skip(family).take(1).for_each(|demand| *demand += 1);
    }
    // A device that lists no queues has one.
    let mut offered = if families.is_empty() { vec![1] } else { families.to_vec() };
    if demands.len() > offered.len() {
        return Some(format!("{} queue families with compute (it has {})", demands.len(), offered.len()));
    }
    // The largest demand meets the family with the most queues: if any assignment works, this one
    // does.
    demands.sort_unstable_by_key(|demand| std::cmp::Reverse(*demand));
    offered.sort_unstable_by_key(|queues| std::cmp::Reverse(*queues));
    let (needed, has) = demands.into_iter().zip(offered).find(|(needed, has)| needed > has)?;
    Some(format!("{needed} compute queues in one queue family (it has {has})"))
}

/// Returns the missing capability of a device to draw a kernel.
fn missing_graphics(kernel: &CompiledKernel, capabilities: &Capabilities) -> Option<String> {
    if kernel.carrier == Carrier::Compute {
        return None;
    }
    if capabilities.graphics_queues.is_empty() {
        return Some("a queue with graphics and compute".to_owned());
    }
    let Carrier::Fragment { layout: cells, .. } = &kernel.carrier else { return None };
    let most = capabilities.max_point_size;
    (cells.size > most).then(|| format!("points of {} pixels (it has {most})", cells.size))
}

fn missing_subgroup_support(kernel: &CompiledKernel, capabilities: &Capabilities) -> Option<String> {
    if kernel.variant.subgroup_size != SubgroupSize::Unspecified
        && !capabilities.has_feature(Feature::SubgroupSizeControl)
    {
        return Some(Feature::SubgroupSizeControl.to_string());
    }
    let Requirements { subgroup_size, required_size, .. } = kernel.requirements;
    let size = subgroup_size.or(required_size)?;
    let (smallest, largest) = capabilities.subgroup_size_range;
    if !capabilities.subgroups_in_compute {
        Some("subgroups in compute".to_owned())
    } else if !capabilities.full_subgroups {
        Some(Feature::ComputeFullSubgroups.to_string())
    } else if !(smallest..=largest).contains(&size) {
        Some(format!("subgroups of {size}"))
    } else if kernel.workgroup_size > size.saturating_mul(capabilities.max_workgroup_subgroups) {
        Some("maxComputeWorkgroupSubgroups".to_owned())
    } else {
        None
    }
}

/// Returns the workgroup memory that a program needs and a device lacks.
fn missing_workgroup_memory(program: &Program, capabilities: &Capabilities) -> Option<String> {
    program.kernels().find_map(|kernel| {
        let needed = kernel.requirements.workgroup_bytes;
        let available = capabilities.max_workgroup_memory_bytes.min(kernel.carrier.max_workgroup_bytes());
        (needed > available).then(|| format!("{needed} bytes of workgroup memory (it has {available})"))
    })
}

impl FromStr for RunVariant {
    type Err = RunVariantError;

    fn from_str(text: &str) -> Result<RunVariant, RunVariantError> {
        let words: Vec<&str> = text.split('.').filter(|word| !word.is_empty()).collect();
        let variant = RunVariant::from_words(words.iter().copied())?;
        for (index, word) in words.iter().enumerate() {
            let others = words.iter().enumerate().filter(|(other, _)| *other != index);
            if RunVariant::from_words(others.map(|(_, word)| *word))? == variant {
                return Err(RunVariantError::WithoutEffect((*word).to_owned(), text.to_owned()));
            }
        }
        Ok(variant)
    }
}

/// Formats the words that parse as this variant.
impl fmt::Display for RunVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let split = (self.pipelines == Pipelines::Split).then_some(SPLIT);
        let named = MemoryKind::NAMED.iter().find(|(_, kind)| Some(*kind) == self.memory);
        // The word for separate locations already contains the memory type.
        let memory =
            named.map(|(word, _)| word).filter(|_| self.shader.separate_storages == SeparateStorages::None);
        let shader = self.shader.to_string();
        let shader = (!shader.is_empty()).then_some(shader.as_str());
        let words = split.into_iter().chain(self.join.map(Join::name)).chain(memory.copied()).chain(shader);
        f.write_str(&words.collect::<Vec<_>>().join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> shaders::KernelConfig {
        shaders::KernelConfig { subgroup_size: 8, lanes: 8, ..shaders::KernelConfig::MINIMAL }
    }

    fn capable_device() -> Capabilities {
        Capabilities {
            memory_model: true,
            device_scope: true,
            subgroups_in_compute: true,
            full_subgroups: true,
            subgroup_size_range: (4, 8),
            max_workgroup_subgroups: 2,
            features: vec![Feature::TimelineSemaphore],
            ..Capabilities::default()
        }
    }

    #[test]
    fn texts_and_variants_correspond() {
        let texts =
            ["", "split", "event", "split.fence", "split.event.nonlocal", "cached", "nonlocal-payload"];
        let more = [
            "split.event.nonlocal.volatile.phi",
            "glsl450",
            "split.size-3.workgroups-17",
            "split.form-7-0-3",
        ];
        for text in texts.into_iter().chain(more) {
            assert_eq!(text.parse::<RunVariant>().unwrap().to_string(), text);
        }
        for (text, word) in
            [("split.split", "split"), ("visible.coherent", "visible"), ("calls.fence", "calls")]
        {
            let without_effect = RunVariantError::WithoutEffect(word.to_owned(), text.to_owned());
            assert_eq!(text.parse::<RunVariant>(), Err(without_effect));
        }
        let unknown = "split.fast".parse::<RunVariant>().unwrap_err().to_string();
        assert!(
            unknown.starts_with("unknown variant `fast`; expected one of split, calls, barrier, event"),
            "{unknown}"
        );
    }

    #[test]
    fn missing_subgroup_features_are_named() {
        let test =
            "VULKAN T { x = 0; } P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ; st.sc0 x, 1 | ld.sc0 r0, x ;";
        let program =
            shaders::compile_program(&litmus::parse(test, "T").unwrap(), &config(), Pipelines::Merged)
                .unwrap();
        let device = capable_device();
        let lack = |capabilities: &Capabilities| {
            RunVariant::default().missing_capability(&program, &[], capabilities)
        };
        assert_eq!(lack(&device), None);
        let lacks = [
            (Capabilities { memory_model: false, ..device.clone() }, "vulkanMemoryModel"),
            (Capabilities { subgroups_in_compute: false, ..device.clone() }, "subgroups in compute"),
            (Capabilities { full_subgroups: false, ..device.clone() }, "computeFullSubgroups"),
            (Capabilities { subgroup_size_range: (16, 32), ..device.clone() }, "subgroups of 8"),
            (Capabilities { max_workgroup_subgroups: 1, ..device.clone() }, "maxComputeWorkgroupSubgroups"),
        ];
        for (capabilities, name) in lacks {
            assert_eq!(lack(&capabilities).as_deref(), Some(name));
        }
        let needs = ["shaderInt64".to_owned()];
        assert_eq!(
            RunVariant::default().missing_capability(&program, &needs, &device).as_deref(),
            Some("shaderInt64")
        );
    }

    #[test]
    fn too_many_workgroups_are_refused() {
        let refused = |text: &str, max_workgroups| {
            text.parse::<RunVariant>()
                .unwrap()
                .refusal_reason(&Capabilities { max_workgroups, ..capable_device() })
        };
        assert_eq!(refused("workgroups-256", 256), None);
        let lack = refused("split.size-3.workgroups-257", 256);
        assert_eq!(lack.as_deref(), Some("257 workgroups in a dispatch (it has 256)"));
    }

    #[test]
    fn a_join_without_its_feature_is_skipped_unless_named() {
        let program = phases("avdevice", "visdevice");
        let joins = |text: &str| text.parse::<RunVariant>().unwrap().joins(&program, |_| false);
        // Without calls, the test's own calls cannot be run.
        assert_eq!(joins("").len(), Join::ALL.len() - 2);
        assert_eq!(joins("timeline"), [Join::Timeline]);
    }

    /// A mechanism that publishes more than the test, or cannot express it, is left out or refused by name.
    #[test]
    fn a_join_that_cannot_express_the_masks_is_skipped_or_refused() {
        let all = |program: &Program| RunVariant::default().joins(program, |_| true);
        assert_eq!(all(&phases("avdevice.memory_write", "visdevice.shader_read")), Join::ALL[1..]);
        let narrow = phases("avdevice.none", "visdevice.shader_read");
        assert_eq!(all(&narrow), [Join::Barrier, Join::Event, Join::Submit]);
        let host = phases("avdevice.shader_write.host_write", "visdevice.shader_read.host_read");
        assert!(!all(&host).contains(&Join::Event) && all(&host).contains(&Join::Semaphore));
        let lacking = |text: &str, program: &Program| {
            text.parse::<RunVariant>().unwrap().missing_capability(program, &[], &capable_device())
        };
        for word in ["semaphore", "timeline", "fence"] {
            let rule = "semaphore or fence in place of access masks";
            assert_eq!(lacking(word, &narrow).as_deref(), Some(rule));
            assert_eq!(lacking(word, &host), None);
        }
        assert_eq!(lacking("event", &host).as_deref(), Some("event after accesses of the host"));
        assert_eq!(lacking("event", &narrow), None);
    }

    /// Compiles a thread that writes and one in another dispatch that reads, with these operations of the
    /// API.
    fn phases(available: &str, visible: &str) -> Program {
        let text = format!(
            "VULKAN T {{ x = 0; }} {{ ssw 0 1; }} P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
            st.sc0 x, 1 | {visible} ; {available} | ld.sc0 r0, x ;"
        );
        let test = litmus::parse(&text, "T").unwrap();
        shaders::compile_program(&test, &config(), Pipelines::Merged).unwrap()
    }
}
