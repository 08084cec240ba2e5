//! Options of an analysis.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::contents::{AddressInput, ImageInput, RayResults};
use crate::finding::InvocationId;
use crate::input_place::{AssumedInput, UnsetOverride};
use crate::open_memory::OpenMemory;
use crate::robustness::Robustness;
use crate::sampler::Sampler;
use spirv_reader::annotations::Formula;
use spirv_reader::{HlslRules, ShaderLanguage};

/// The contents of a buffer, which copies of options share.
pub type InputBytes = Arc<Vec<u8>>;

/// Default bound on the iterations of loops that depend on read values.
pub const DEFAULT_UNROLL: u32 = 2;

/// Subgroup sizes of many devices; the first is chosen where none is given.
const COMMON_SUBGROUP_SIZES: [u32; 4] = [32, 64, 16, 8];

/// Options of an analysis: the grid, the inputs, the claim and the bounds.
#[derive(Clone, Debug, Default)]
pub struct AnalysisOptions {
    /// The entry point; may be omitted if there is only one.
    pub entry: Option<String>,
    /// The source language of the module. Default: that of its debug information.
    pub language: Option<ShaderLanguage>,
    /// True to analyse the module by the rules of its language; see [`SpirvModule::by_language_rules`].
    pub by_language_rules: bool,
    /// The candidate for the rules of HLSL.
    pub hlsl: HlslRules,
    /// Workgroups of the dispatch. Default: the annotations, else one.
    pub grid: Option<[u32; 3]>,
    /// The workgroups that a walk runs, by their position in the grid; the others do not start. Default: all.
    pub workgroups: Vec<[u32; 3]>,
    /// True if these were chosen from a given grid that is too large for a walk, so that a pass says nothing about it.
    pub is_sampled: bool,
    /// Invocations per subgroup. Default: the annotations, else the whole workgroup.
    pub subgroup_size: Option<u32>,
    /// The sizes that the source permits, the preferred one first. Default: those of many devices.
    pub subgroup_sizes: Vec<u32>,
    /// Specialization constants by `SpecId`.
    pub specialization: HashMap<u32, u64>,
    /// Bytes of push constants by offset.
    pub push: BTreeMap<u64, u8>,
    /// Values of specialization constants by name; see `resolve_names`.
    pub named_constants: BTreeMap<String, String>,
    /// Numbers of push constants and buffers by the name of a member; see `resolve_names`.
    pub named_members: BTreeMap<String, Vec<String>>,
    /// Offsets and sizes of the members that alone are given of a buffer, by set and binding.
    pub given_members: BTreeMap<(u32, u32), BTreeMap<u64, u32>>,
    /// Conditions on the inputs that proofs assume, such as `pc.stride >= pc.width`.
    pub conditions: Vec<String>,
    /// Inputs of vertices and fragments by location, concatenated for all invocations and repeated if too
    /// short. Other inputs are unknown.
    pub stage_inputs: BTreeMap<u32, Vec<u8>>,
    /// Buffer contents by the name of the buffer; see `resolve_names`.
    pub named_buffers: BTreeMap<String, InputBytes>,
    /// Images and samplers by the name of a variable; see `resolve_names`.
    pub named_images: BTreeMap<String, ImageInput>,
    pub named_samplers: BTreeMap<String, Sampler>,
    /// Buffer contents by set and binding.
    pub buffers: BTreeMap<(u32, u32), InputBytes>,
    /// Contents of elements of arrays of buffers, by set, binding and element. If some elements of an array have
    /// contents, a walk refuses accesses to the others.
    pub buffer_elements: BTreeMap<(u32, u32, u32), InputBytes>,
    /// Descriptors that are bound to the buffer of another one, by set and binding; see
    /// [`read_bound_module`](crate::inputs::read_bound_module).
    pub aliases: BTreeMap<(u32, u32), (u32, u32)>,
    /// The pipeline-overridable constants whose values the compiler assumed.
    pub unset_overrides: Vec<UnsetOverride>,
    /// Images by set and binding.
    pub images: BTreeMap<(u32, u32), ImageInput>,
    /// Images of elements of arrays, by set, binding and element, like [`AnalysisOptions::buffer_elements`].
    pub image_elements: BTreeMap<(u32, u32, u32), ImageInput>,
    /// Samplers by set and binding, including those of combined image samplers.
    pub samplers: BTreeMap<(u32, u32), Sampler>,
    /// The results of ray queries. Default: [`RayResults::Alternating`], as an assumed input.
    pub ray_queries: Option<RayResults>,
    /// The accesses out of bounds that are defined. Default: none.
    pub robustness: Option<Robustness>,
    /// Buffers that addresses point to.
    pub addresses: Vec<AddressInput>,
    /// The inputs that a case file gives, without their contents.
    pub case_inputs: Option<Box<AnalysisOptions>>,
    /// The inputs that no option supplies. The other fields hold assumed values for them, and a walk tracks
    /// what these decide.
    pub assumed: Vec<AssumedInput>,
    /// Bound on the iterations of every loop. Default: only loops that depend on read values are bounded, by
    /// [`AnalysisOptions::max_open_iterations`].
    pub unroll: Option<u32>,
    /// Bound on the iterations of loops that depend on read values. Default: [`DEFAULT_UNROLL`].
    pub max_open_iterations: Option<u32>,
    /// A claim about every final state.
    pub assertion: Option<Formula>,
    /// True to ignore the annotated filter.
    pub ignore_filter: bool,
    /// True to emit accesses of unshared cells too, for callers that change the test and query the model
    /// again.
    pub keep_all: bool,
    /// True to keep every write to a buffer observable, for callers that enumerate final contents.
    pub keep_final: bool,
    /// True if push constants fill their block, or are all absent.
    pub needs_whole_push: bool,
    /// True if every buffer, image and push constant that the entry point uses has to be given.
    pub needs_all_inputs: bool,
    /// True to leave floats open that Vulkan does not fix; else they have the value that is rounded to the nearest.
    pub has_exact_floats: bool,
    /// Number of schedules to explore even after a finding. Default: a few, until something is found.
    pub schedules: Option<u64>,
    /// Seed of the random schedules.
    pub seed: u64,
    /// The only schedule to explore. Default: all.
    pub replay: Option<ScheduleToken>,
    /// Upper bound on the steps of all schedules. Default: that of the walk.
    pub max_steps: Option<u64>,
    /// The invocations to lift, as if no others existed. Default: all.
    pub only_invocations: Vec<InvocationId>,
    /// When to give up with [`Problem::OutOfTime`](crate::Problem::OutOfTime). Default: never.
    pub deadline: Option<DeadlinePredicate>,
    /// The memory that others write during the kernel, and what they write. Default: none.
    pub open: Option<OpenMemory>,
}

impl AnalysisOptions {
    /// Returns the elements of an array of descriptors with their own contents.
    pub fn given_elements(&self, (set, binding): (u32, u32)) -> BTreeSet<u32> {
        let all = (set, binding, 0)..=(set, binding, u32::MAX);
        let buffers = self.buffer_elements.range(all.clone()).map(|((_, _, element), _)| *element);
        buffers.chain(self.image_elements.range(all).map(|((_, _, element), _)| *element)).collect()
    }

    /// Returns the subgroup sizes to try, the first one first.
    pub fn likely_subgroup_sizes(&self) -> &[u32] {
        if self.subgroup_sizes.is_empty() { &COMMON_SUBGROUP_SIZES } else { &self.subgroup_sizes }
    }

    /// Returns the bound on the iterations of loops that depend on read values.
    pub fn max_open_iterations(&self) -> u32 {
        self.max_open_iterations.unwrap_or(DEFAULT_UNROLL)
    }
}

/// A schedule of a walk, as `SEED:NUMBER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleToken {
    pub seed: u64,
    /// The number of the schedule from 0.
    pub schedule: u64,
}

impl fmt::Display for ScheduleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seed, self.schedule)
    }
}

/// An error of a text that names no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no schedule; expected a token of a failure, such as `0:14`")]
pub struct ScheduleTokenError(String);

impl FromStr for ScheduleToken {
    type Err = ScheduleTokenError;

    fn from_str(text: &str) -> Result<ScheduleToken, ScheduleTokenError> {
        let numbers = text.split_once(':').and_then(|(seed, schedule)| {
            Some(ScheduleToken { seed: seed.parse().ok()?, schedule: schedule.parse().ok()? })
        });
        numbers.ok_or_else(|| ScheduleTokenError(text.to_owned()))
    }
}

/// A function that returns true once a limit is reached.
pub type StopFunction = Arc<dyn Fn() -> bool + Send + Sync>;

/// A predicate for the deadline, evaluated now and then on the analyzing thread.
#[derive(Clone)]
pub struct DeadlinePredicate(StopFunction);

impl DeadlinePredicate {
    /// Creates a deadline that has passed once `stop` returns true.
    pub fn new(stop: impl Fn() -> bool + Send + Sync + 'static) -> DeadlinePredicate {
        DeadlinePredicate(Arc::new(stop))
    }

    pub fn has_passed(&self) -> bool {
        self.0()
    }
}

impl fmt::Debug for DeadlinePredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Until")
    }
}
