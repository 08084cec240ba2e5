//! The state of a walk: invocations, workgroups, memory and findings.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use litmus::{Scope, Semantics};
use rspirv::spirv::BuiltIn;
use rustc_hash::FxHashMap;
use spirv_reader::Stage;

use entry_point::inputs::RayResults;
use entry_point::interlock::{InterlockExecutionMode, InterlockState};
use entry_point::launch::LaunchShape;
use entry_point::{DeadlinePredicate, FindingCause, FindingKind, InvocationId};

use super::access_recorder::AccessRecorder;
use super::happens_before::{ClassMap, Epoch, HappensBeforeView, ReleaseMessage, ReleaseSet};
use super::influence::InputInfluence;
use super::launch_taint::LaunchTaint;
use super::memory::{MemoryObject, PrivateObjects};
use super::program::DecodedProgram;
use super::race_check::{DefinedCollisions, InvocationNumbering, SelfVisibleWrites};
use super::report::RequiredSize;
use super::slots::Slots;
use super::step::{Step, StepInterrupt};
use super::trace_recorder::TraceRecorder;
use super::value::{ConcreteValue, Taint};

/// Tag of object numbers in workgroup memory.
pub(super) const WORKGROUP_TAG: u32 = 1 << 30;

/// The place of an atomic: the object, its workgroup and the offset.
pub(super) type AtomicPlace = (u32, u32, u64);

/// The state of one walk.
#[derive(Clone)]
pub(super) struct Interpreter<'a> {
    pub setup: &'a WalkSetup,
    pub program: &'a DecodedProgram<'a>,
    pub globals: Vec<ConcreteValue>,
    pub objects: Vec<MemoryObject>,
    pub descriptors: FxHashMap<u32, DescriptorArray>,
    /// The workgroups that have started and not ended, by index.
    pub workgroups: FxHashMap<u32, Box<WorkgroupState>>,
    /// The state of interlocked sections, by pixel.
    pub pixels: BTreeMap<(u32, u32), PixelInterlock>,
    /// The releases that atomics stored, by object and offset.
    pub releases: FxHashMap<AtomicPlace, ReleaseSet>,
    /// The invocation whose exchange replaced an undefined value, until another invocation has an access after it.
    pub initializers: FxHashMap<AtomicPlace, u32>,
    /// The atomic loads that every earlier write of their place happens before.
    pub settled_loads: FxHashMap<AtomicPlace, Vec<Epoch>>,
    /// True if a later write is unordered with such a load.
    pub has_unsettled_load: bool,
    pub findings: Vec<SiteFinding>,
    pub reported: BTreeSet<(FindingKind, Vec<u32>, String)>,
    /// The conflicts that are reported: kind, true for equal stores, and the instructions.
    pub conflicts: BTreeSet<(FindingKind, bool, [u32; 2])>,
    /// True if the schedule decided control flow or an address.
    pub is_schedule_dependent: bool,
    /// True if a subgroup operation was executed without some lanes, running or ended.
    pub has_partial_subgroups: bool,
    /// The first atomic write whose order with another decides the final value, as a sentence.
    pub unordered_write: Option<String>,
    /// The influence of the inputs that no option supplies.
    pub influence: InputInfluence,
    /// Assumptions to mention in the coverage.
    pub notes: BTreeSet<String>,
    /// The objects whose assumed size accesses exceed.
    pub exceeded: BTreeMap<u32, ExceededObject>,
    pub steps: u64,
    /// The number of steps at which the deadline is checked next.
    pub next_check: u64,
    /// Number of changes of memory or state that other invocations can observe.
    pub changes: u64,
    /// Number of preemption points passed.
    pub events: u64,
    /// Number of shared memory accesses.
    pub accesses: u64,
    /// The taint of the value that the current store writes, if memory already holds it.
    pub repeated_store: Option<Taint>,
    /// The reads of a loop body; `Some` while probing for a spin loop.
    pub spin_reads: Option<Vec<SpinRead>>,
    /// The steps of chosen invocations, if requested.
    pub trace: Option<Box<TraceRecorder>>,
    /// The bytes that were accessed, if requested.
    pub accessed: Option<AccessRecorder>,
    /// Which lane accesses which element of a cooperative matrix.
    pub rotation: u32,
    /// Sites that produced undefined values, in the order of their taint bits.
    pub undefined_sources: Vec<SiteFinding>,
    pub block_entries: BlockEntries,
    /// True if the grid has one invocation.
    pub is_single_invocation: bool,
    /// The result of [`shadow_bytes`](Interpreter::shadow_bytes) for the largest ended workgroup.
    pub largest_shadow: (u64, u64),
    /// Frames to reuse, by function.
    pub spare_frames: Vec<Vec<CallFrame>>,
    /// The last workgroup that ended, to reuse.
    pub spare_workgroup: Option<Box<WorkgroupState>>,
    /// Execution scope and semantics of the control barriers that were executed, by site.
    pub barriers: RefCell<FxHashMap<u32, (Scope, BarrierSemantics)>>,
    /// The semantics of the last atomic, with their number.
    pub last_semantics: (u64, Semantics),
    /// The dynamic instance that an invocation last waited at, and the memory of the next.
    pub last_instance: Rc<Vec<u32>>,
    pub instance_buffer: Vec<u32>,
    /// Call stacks: the number of the caller's stack, and the site of the call.
    pub calls: Vec<(u32, u32)>,
    pub calls_by_site: FxHashMap<(u32, u32), u32>,
    /// The initial contents of private variables.
    pub private_templates: Vec<PrivateTemplate>,
    /// The remaining checks for starved lanes.
    pub trial_budget: TrialBudget,
}

impl<'a> Interpreter<'a> {
    /// Returns the state before the first step.
    pub fn new(
        setup: &'a WalkSetup,
        program: &'a DecodedProgram<'a>,
        globals: Vec<ConcreteValue>,
        objects: Vec<MemoryObject>,
        descriptors: FxHashMap<u32, DescriptorArray>,
        influence: InputInfluence,
        notes: BTreeSet<String>,
    ) -> Interpreter<'a> {
        let invocations =
            setup.local_size.iter().fold(setup.workgroup_count(), |all, n| all.saturating_mul(*n));
        Interpreter {
            setup,
            program,
            globals,
            objects,
            descriptors,
            workgroups: FxHashMap::default(),
            pixels: BTreeMap::new(),
            releases: FxHashMap::default(),
            initializers: FxHashMap::default(),
            settled_loads: FxHashMap::default(),
            has_unsettled_load: false,
            findings: Vec::new(),
            reported: BTreeSet::new(),
            conflicts: BTreeSet::new(),
            spare_frames: Vec::new(),
            is_schedule_dependent: false,
            has_partial_subgroups: false,
            unordered_write: None,
            influence,
            notes,
            exceeded: BTreeMap::new(),
            steps: 0,
            next_check: 0,
            changes: 0,
            events: 0,
            accesses: 0,
            repeated_store: None,
            spare_workgroup: None,
            barriers: RefCell::default(),
            last_semantics: (0, Semantics::RELAXED),
            private_templates: Vec::new(),
            spin_reads: None,
            trace: None,
            accessed: None,
            last_instance: Rc::default(),
            instance_buffer: Vec::new(),
            calls: Vec::new(),
            calls_by_site: FxHashMap::default(),
            rotation: 1,
            undefined_sources: Vec::new(),
            block_entries: BlockEntries::with_sites(program.instruction_count()),
            is_single_invocation: invocations <= 1,
            largest_shadow: (0, 0),
            trial_budget: TrialBudget::default(),
        }
    }
}

/// The immutable configuration of a walk.
pub(super) struct WalkSetup {
    pub grid: [u32; 3],
    /// The workgroups that run, by their index in the walk; empty if all run.
    pub running_workgroups: Vec<[u32; 3]>,
    /// Annotated initial values by variable: offset, bytes and number of each scalar.
    pub annotated_values: FxHashMap<u32, Vec<(u64, u32, u64)>>,
    pub stage: Stage,
    /// See [`AnalysisOptions::stage_inputs`](crate::AnalysisOptions::stage_inputs).
    pub stage_inputs: BTreeMap<u32, Vec<u8>>,
    pub local_size: [u32; 3],
    /// The interlock mode of the entry point.
    pub sections: Option<InterlockExecutionMode>,
    pub subgroup_size: u32,
    /// Subgroups per workgroup.
    pub subgroups: u32,
    pub function: usize,
    /// Variables of each workgroup and of each invocation, in the order of their objects.
    pub workgroup_variables: Vec<u32>,
    pub private_variables: Vec<u32>,
    /// The collisions that the source language defines in memory that all workgroups share.
    pub collisions: DefinedCollisions,
    /// True if more than barriers of whole workgroups orders invocations.
    pub has_fine_ordering: bool,
    /// True if invocations wait for each other only at control barriers of the workgroup.
    pub has_only_workgroup_barriers: bool,
    /// True if reads of one class differ in how far their own visibility operation reaches.
    pub has_mixed_visibility: bool,
    /// The taint of positions in the grid and in the workgroup.
    pub launch_taint: LaunchTaint,
    /// The results of ray queries, and their taint.
    pub ray_queries: (RayResults, Taint),
    /// True if floats are opaque that Vulkan does not fix.
    pub has_exact_floats: bool,
    /// When to give up.
    pub deadline: Option<DeadlinePredicate>,
}

impl WalkSetup {
    /// Returns the number of workgroups that run.
    pub fn workgroup_count(&self) -> u32 {
        match self.running_workgroups.len() {
            0 => self.grid.iter().product(),
            count => count as u32,
        }
    }

    /// Returns the position in the grid of a workgroup of the walk.
    pub fn workgroup_position(&self, index: u32) -> [u32; 3] {
        let [x, y, _] = self.grid;
        let chosen = self.running_workgroups.get(index as usize).copied();
        chosen.unwrap_or_else(|| [index % x, index / x % y, index / x / y])
    }

    /// Returns the shape of the launch.
    pub fn launch_shape(&self) -> LaunchShape {
        let WalkSetup { stage, grid, local_size, subgroup_size, .. } = *self;
        LaunchShape { stage, grid, local_size, subgroup_size }
    }

    /// Returns the layout of invocation numbers.
    pub fn numbering(&self) -> InvocationNumbering {
        InvocationNumbering {
            workgroup_size: self.local_size.iter().product(),
            subgroup_size: self.subgroup_size,
        }
    }
}

/// A workgroup, with its invocations and shared variables.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkgroupState {
    pub invocations: Vec<Invocation>,
    pub objects: Vec<MemoryObject>,
    /// Barriers of the whole workgroup so far, for each class.
    pub barrier_epochs: ClassMap<u32>,
    /// Releases of the arrivals at split barriers, by owner and round.
    pub split_rounds: BTreeMap<(Option<u32>, u32), Vec<Rc<ReleaseMessage>>>,
}

/// An invocation, with its registers, private memory and view of shared memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Invocation {
    pub identity: InvocationId,
    pub number: u32,
    pub subgroup: u32,
    pub lane: u32,
    pub numbering: InvocationNumbering,
    pub frames: Vec<CallFrame>,
    pub locals: PrivateObjects,
    pub views: ClassMap<HappensBeforeView>,
    pub state: InvocationState,
    /// Releases of fences, which later atomics and barriers carry.
    pub pending_releases: Vec<Rc<ReleaseMessage>>,
    /// Releases that atomics and barriers read, which later acquire fences take.
    pub pending_acquires: Vec<Rc<ReleaseMessage>>,
    pub acquires_are_merged: bool,
    /// The release set that an atomic read last; it is part of `pending_acquires`.
    pub last_received: Option<ReleaseSet>,
    /// For each location whose atomics order only itself, the writes that are visible there.
    pub self_visible: BTreeMap<(u32, u32, u64), SelfVisibleWrites>,
    /// Arrivals and completed waits at split barriers, of the subgroup and of the workgroup.
    pub split_counts: [(u32, u32); 2],
    /// The clock: counts releases, and writes where reads have mixed visibility.
    ///
    /// Other invocations learn of accesses only through a release, so accesses between two releases need no
    /// distinct times.
    pub clock: u32,
    /// The clock at the last release.
    pub last_release: u32,
    /// The position relative to the interlocked section.
    pub interlock: InterlockState,
    pub ray_queries: RayQueries,
    /// The last instruction of an ended invocation.
    pub last_site: u32,
    /// True if it changed nothing when it last ran and is still running.
    pub made_no_change: bool,
}

impl Invocation {
    /// Resets a new or ended invocation to the start of another one; its call stack is empty.
    pub fn restart(&mut self, at: InvocationId, layout: InvocationNumbering) {
        let Invocation {
            identity,
            number,
            subgroup,
            lane,
            numbering,
            frames: _,
            locals,
            views,
            state,
            pending_releases,
            pending_acquires,
            acquires_are_merged,
            last_received,
            self_visible,
            split_counts,
            clock,
            last_release,
            interlock,
            ray_queries,
            last_site,
            made_no_change,
        } = self;
        (*identity, *numbering) = (at, layout);
        *number = at.workgroup_index * layout.workgroup_size + at.local_index;
        (*subgroup, *lane) = (at.local_index / layout.subgroup_size, at.local_index % layout.subgroup_size);
        locals.truncate_to(0);
        *views = ClassMap::default();
        *state = InvocationState::Running;
        pending_releases.clear();
        pending_acquires.clear();
        *last_received = None;
        self_visible.clear();
        (*split_counts, *clock, *last_release, *last_site) = ([(0, 0); 2], 0, 0, 0);
        (*acquires_are_merged, *made_no_change) = (false, false);
        *interlock = InterlockState::Before;
        *ray_queries = RayQueries::default();
    }
}

/// The execution state of an invocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum InvocationState {
    #[default]
    Running,
    /// Waits at a control barrier or subgroup operation, identified by its dynamic instance.
    Waiting(Rc<Vec<u32>>),
    Ended,
}

/// An active call.
#[derive(Clone, Debug)]
pub(super) struct CallFrame {
    pub function: usize,
    pub at: usize,
    pub block: u32,
    pub values: Vec<ConcreteValue>,
    /// Headers of the enclosing loops, with the number of their current iteration.
    pub loops: Vec<(u32, u32)>,
    /// The caller's slots for the result.
    pub result: Slots,
    /// Number of private objects before the call.
    pub locals: usize,
    /// Number of the call stack; 0 in the entry point.
    pub calls: u32,
}

/// The entries of each block, by the number of its label instruction.
#[derive(Clone, Debug)]
pub(super) struct BlockEntries {
    /// The number of entries; 255 and more are one.
    pub counts: Vec<u8>,
    /// True for the blocks that several invocations entered.
    pub is_shared: Vec<bool>,
    /// The invocation that entered first, plus one; 0 if none did.
    pub first: Vec<u32>,
    /// The invocation that executes.
    pub invocation: u32,
}

impl BlockEntries {
    pub fn with_sites(count: usize) -> BlockEntries {
        let (counts, is_shared, first) = (vec![0; count], vec![false; count], vec![0; count]);
        BlockEntries { counts, is_shared, first, invocation: 0 }
    }

    /// Counts an entry of the executing invocation.
    #[inline(always)]
    pub fn count_entry(&mut self, site: usize) {
        let Some(entries) = self.counts.get_mut(site) else { return };
        if *entries == u8::MAX && self.is_shared[site] {
            return;
        }
        *entries = entries.saturating_add(1);
        match self.first[site] {
            0 => self.first[site] = self.invocation + 1,
            first => self.is_shared[site] |= first != self.invocation + 1,
        }
    }
}

/// An invocation together with its workgroup.
pub(super) struct InvocationCtx<'w> {
    pub workgroup: &'w mut WorkgroupState,
    pub index: usize,
}

impl InvocationCtx<'_> {
    pub fn invocation_mut(&mut self) -> &mut Invocation {
        &mut self.workgroup.invocations[self.index]
    }

    pub fn frame_mut(&mut self) -> Step<&mut CallFrame> {
        self.invocation_mut().frames.last_mut().ok_or(StepInterrupt::Ended)
    }
}

/// A defect, with sites that are not yet resolved to source lines.
#[derive(Clone, Debug)]
pub(super) struct SiteFinding {
    pub cause: FindingCause,
    /// The accessed element; empty if none is known.
    pub element: String,
    pub message: String,
    /// Site, invocation, and for an access whether it writes.
    pub at: Vec<(u32, InvocationId, Option<bool>)>,
    /// The assumed inputs that the reported values or addresses depend on.
    pub inputs: Taint,
}

/// An object whose assumed size an access exceeds.
#[derive(Clone, Debug)]
pub(super) struct ExceededObject {
    /// A size that holds all accesses.
    pub required: RequiredSize,
    /// The first access beyond the size.
    pub found: SiteFinding,
}

/// An array of descriptors.
#[derive(Clone, Debug)]
pub(super) struct DescriptorArray {
    pub ty: u32,
    pub element: u32,
    pub objects: Vec<u32>,
    /// True if its length is assumed.
    pub has_assumed_length: bool,
    /// The elements with their own contents. If there are any, accesses to the others are refused.
    pub given: BTreeSet<u32>,
}

/// Scope and semantics of a control barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarrierSemantics {
    pub scope: Scope,
    pub semantics: Semantics,
}

/// The interlock state of one pixel.
#[derive(Clone, Debug, Default)]
pub(super) struct PixelInterlock {
    /// The primitive whose fragment is in its section.
    pub active_primitive: Option<u32>,
    /// The primitives whose fragments have left their section or ended.
    pub finished_primitives: BTreeSet<u32>,
    /// The release of the last section, which includes those before it.
    pub last_release: Option<Rc<ReleaseMessage>>,
}

/// The initial content of a private variable, shared by all invocations.
#[derive(Clone, Debug)]
pub(super) struct PrivateTemplate {
    pub variable: u32,
    pub bytes: Vec<u8>,
    pub taint: Vec<Taint>,
    /// An input variable, whose content differs between invocations.
    pub input: Option<PrivateInput>,
}

/// An input variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrivateInput {
    pub ty: u32,
    pub built_in: Option<BuiltIn>,
    pub location: Option<u32>,
}

impl PrivateTemplate {
    pub fn initialize_object(&self, object: &mut MemoryObject) {
        (object.variable, object.has_known_length) = (self.variable, true);
        object.bytes.clone_from(&self.bytes);
        object.taint.clone_from(&self.taint);
    }
}

/// Remaining checks for lanes that wait for another lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialBudget {
    /// Checks for a spin loop.
    pub loops: u32,
    /// Trials without the other lanes.
    pub trials: u32,
}

impl Default for TrialBudget {
    fn default() -> TrialBudget {
        TrialBudget { loops: 64, trials: 4 }
    }
}

/// A read of a loop body: atomic or not, the object, and the byte.
pub(super) type SpinRead = (bool, u32, u64);

/// The state of a ray query object.
#[derive(Clone, Copy, Debug, Default)]
pub struct RayQueryState {
    /// True if a candidate was not yet returned.
    pub has_candidate: bool,
    /// The type of the committed intersection; 0 for none.
    pub committed: u64,
    /// The type that is committed at the end of the query.
    pub pending: u64,
}

/// The ray queries of an invocation.
#[derive(Clone, Debug, Default)]
pub struct RayQueries {
    /// The number of rays so far.
    pub rays: u32,
    /// The state of each object, by object number and offset.
    pub queries: BTreeMap<(u32, u64), RayQueryState>,
}
