//! Binds a submission: assigns memory to references, shapes the cache tree, and groups invocations into
//! waves.

use std::collections::BTreeMap;

use plan::{BufferId, DeviceError, ImageShape, Kernel, Plan, PlanStep};
use spirv_reader::Stage;

use super::rasterize::ShadedInvocations;
use crate::fault::Fault;
use crate::limits::SUBGROUP_SIZE;
use crate::machine::{Launched, Machine};
use crate::memory::{CachePath, CacheShape};
use crate::program::{DEVICE, LANES, MEMORY, Program, ReferencePlace, SUBGROUP, WORKGROUP};
use crate::random::Random;
use crate::wave::{BoundReference, DispatchState, Wave};

/// The maximal number of invocations in a dispatch.
const MAX_INVOCATIONS: u32 = 1 << 26;

/// The caches and the position of an invocation.
type Invocation = (CachePath, [u32; 4]);

/// The position of a submission's dispatches in the cache tree.
#[derive(Clone, Debug, Default)]
pub(super) struct SubmissionLayout {
    /// The dispatch numbers of each step: two if both vertices and fragments of a draw take part.
    dispatches_of_step: BTreeMap<usize, Vec<usize>>,
    /// The launch of each dispatch.
    launches: Vec<LaunchPosition>,
    /// By dispatch: references that the cache of an invocation may contain.
    pub cached: Vec<Vec<usize>>,
    parents: [Vec<u32>; 3],
}

/// The position of a dispatch or draw in the cache tree.
#[derive(Clone, Debug, Default)]
struct LaunchPosition {
    step: usize,
    invocations: u32,
    /// Invocations of a workgroup, or of the group that shares a cache instead.
    size: u32,
    first_subgroup: u32,
    first_invocation: u32,
    /// The vertices or fragments of a draw.
    shaded: Option<ShadedInvocations>,
}

impl LaunchPosition {
    /// Returns the number of workgroups, the last of which may be smaller.
    fn workgroups(&self) -> u32 {
        self.invocations.div_ceil(self.size)
    }

    /// Returns the number of subgroups in a workgroup.
    fn subgroups_per_workgroup(&self) -> u32 {
        self.size.div_ceil(SUBGROUP_SIZE)
    }
}

/// Returns the kernel of a dispatch or draw, and its bound buffers.
pub(super) fn kernel_and_bindings(step: &PlanStep) -> Option<(usize, &[BufferId])> {
    match step {
        PlanStep::Dispatch { kernel, bindings, .. } | PlanStep::Draw { kernel, bindings, .. } => {
            Some((kernel.0 as usize, bindings))
        }
        _ => None,
    }
}

/// Resolves the memory of references other than buffer bindings.
///
/// # Errors
/// Returns an error if the plan has no memory for a reference.
pub(super) fn resolve_references(
    program: &mut Program,
    kernel: &Kernel,
    plan: &Plan,
) -> Result<(), DeviceError> {
    let unbound_error =
        |what: &str| DeviceError::InvalidPlan(format!("a kernel uses {what} that the plan does not bind"));
    let first_address = kernel.push_constant_bytes / 4;
    for reference in &mut program.references {
        reference.place = match reference.place {
            ReferencePlace::Image(binding) => {
                // Images follow the buffers, in the bindings of a kernel and in memory.
                let number = binding.checked_sub(kernel.bindings);
                let id = number.and_then(|number| kernel.images.get(number as usize)).copied();
                let image = id.and_then(|id| Some((id, plan.images.get(id.0 as usize)?)));
                let (id, image) = image.ok_or_else(|| unbound_error("an image"))?;
                let own = plan.buffers.len() as u32 + id.0;
                match image.shape {
                    ImageShape::Texels(buffer) => ReferencePlace::Fixed { memory: buffer.0, width: 0 },
                    ImageShape::OneDimensional { .. } => ReferencePlace::Fixed { memory: own, width: 0 },
                    ImageShape::TwoDimensional { width, .. } => ReferencePlace::Fixed { memory: own, width },
                    // The program has no such type.
                    ImageShape::Layered { .. } | ImageShape::ThreeDimensional { .. } => {
                        return Err(unbound_error("an image of another shape"));
                    }
                }
            }
            ReferencePlace::Address(word) => {
                // Addresses of eight bytes follow the push constants.
                let number = word.checked_sub(first_address).map(|words| words / 2);
                let buffer = number.and_then(|number| kernel.addresses.get(number as usize));
                let buffer = buffer.ok_or_else(|| unbound_error("an address"))?;
                ReferencePlace::Fixed { memory: buffer.0, width: 0 }
            }
            other => other,
        };
    }
    Ok(())
}

/// Returns the memory number of a reference and the texels of a row; `None` for workgroup memory.
fn bound_memory(place: ReferencePlace, bindings: &[plan::BufferId]) -> Option<(u32, u32)> {
    match place {
        ReferencePlace::Binding(binding) => {
            Some((bindings.get(binding as usize).map_or(0, |buffer| buffer.0), 0))
        }
        ReferencePlace::Fixed { memory, width } => Some((memory, width)),
        ReferencePlace::Image(_) | ReferencePlace::Address(_) | ReferencePlace::Workgroup(..) => None,
    }
}

/// Binds every dispatch, shapes the caches and begins the submission.
///
/// # Errors
/// Returns an error if the memory of all workgroups is too large.
pub(super) fn bind_submission(
    steps: &[PlanStep],
    families: &[u32],
    programs: &[Program],
    (buffers, host_visible): (&[(u32, u32)], &[bool]),
    machine: &mut Machine,
    seed: u64,
) -> Result<(Vec<DispatchState>, SubmissionLayout), DeviceError> {
    let mut layout = SubmissionLayout::default();
    let mut dispatches: Vec<DispatchState> = Vec::new();
    // A reference is identified by its buffer's name: kernels with the same name for it share one reference.
    let mut references: BTreeMap<(u32, String), usize> = BTreeMap::new();
    let (mut homes, mut lowest, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    // By reference: the scope of its accesses, if that is uniform.
    let mut uniform_scopes: Vec<Option<u8>> = Vec::new();
    let mut host_visible_references: Vec<bool> = Vec::new();
    let (mut invocations, mut subgroups, mut workgroups) = (0u32, 0u32, 0u32);
    // Workgroup memory follows the buffers.
    let mut next = buffers.iter().map(|(first, words)| first + words).max().unwrap_or(1);
    // By buffer: the number of references, and whether all accesses are at device level.
    let mut uses: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        let (PlanStep::Dispatch { push_constants, .. } | PlanStep::Draw { push_constants, .. }) = step else {
            continue;
        };
        let Some((kernel, bindings)) = kernel_and_bindings(step) else { continue };
        let family = families.get(step.queue().0 as usize).copied().unwrap_or(0);
        let Some(program) = programs.get(kernel) else { continue };
        let vertices = program.vertex_program.and_then(|number| Some((number, programs.get(number)?)));
        let launched_programs = std::iter::once(program).chain(vertices.map(|(_, vertices)| vertices));
        for reference in launched_programs.flat_map(|program| &program.references) {
            if let Some((buffer, _)) = bound_memory(reference.place, bindings) {
                let buffer_uses = uses.entry(buffer).or_insert((0, true));
                buffer_uses.0 += 1;
                buffer_uses.1 &= reference.lowest >= DEVICE && !reference.aliased;
            }
        }
        let parameters: Vec<u32> = push_constants
            .chunks_exact(4)
            .map(|bytes| bytes.iter().rev().fold(0, |word, byte| (word << 8) | u32::from(*byte)))
            .collect();
        let mut launches: Vec<(usize, LaunchPosition)> = Vec::new();
        match step {
            PlanStep::Draw { drawing, .. } => {
                // A draw launches its fragments, and its vertices too if they take part in the
                // test.
                let of_points = vertices.map(|(_, vertices)| vertices).or(program.positions.as_deref());
                let of_vertices = vertices.map(|(number, _)| (number, None));
                for (number_of, positions) in std::iter::once((kernel, of_points)).chain(of_vertices) {
                    let seed = seed ^ number as u64 ^ (launches.len() as u64) << 32;
                    let shaded = ShadedInvocations::new(positions, *drawing, &parameters, machine, seed);
                    let (invocations, size) = (shaded.places.len() as u32, shaded.cache_sharers);
                    let shaded = Some(shaded);
                    launches.push((
                        number_of,
                        LaunchPosition {
                            step: number,
                            invocations,
                            size,
                            shaded,
                            ..LaunchPosition::default()
                        },
                    ));
                }
            }
            PlanStep::Dispatch { workgroups, .. } => {
                let [y, z] = program.layers;
                let all = workgroups.checked_mul(y).and_then(|all| all.checked_mul(z));
                let all = all.and_then(|all| all.checked_mul(program.workgroup_size));
                let all = all.filter(|all| *all <= MAX_INVOCATIONS);
                let invocations = all.ok_or_else(|| {
                    DeviceError::Unsupported(format!("more than {MAX_INVOCATIONS} invocations of a dispatch"))
                })?;
                let size = program.workgroup_size;
                launches.push((
                    kernel,
                    LaunchPosition { step: number, invocations, size, ..LaunchPosition::default() },
                ));
            }
            _ => continue,
        }
        // Along x; the other axes are the layers of the program.
        let workgroups_in_x = match step {
            PlanStep::Dispatch { workgroups, .. } => *workgroups,
            _ => 1,
        };
        for (program, launch) in launches {
            layout.dispatches_of_step.entry(number).or_default().push(dispatches.len());
            let (count, in_each) = (launch.workgroups(), launch.subgroups_per_workgroup());
            for group in 0..count {
                // Each cache has the next one above it as its parent: invocation, subgroup,
                // workgroup, queue family.
                layout.parents[2].push(family);
                let members = launch.size.min(launch.invocations - group * launch.size);
                for subgroup in 0..in_each {
                    let lanes = members.saturating_sub(subgroup * SUBGROUP_SIZE).min(SUBGROUP_SIZE);
                    layout.parents[0].extend((0..lanes).map(|_| subgroups + group * in_each + subgroup));
                    layout.parents[1].push(workgroups + group);
                }
            }
            dispatches.push(DispatchState {
                program,
                parameters: parameters.clone(),
                bindings: Vec::new(),
                first_workgroup: workgroups,
                workgroups: workgroups_in_x,
            });
            let (first_subgroup, first_invocation) = (subgroups, invocations);
            invocations += launch.invocations;
            layout.launches.push(LaunchPosition { first_subgroup, first_invocation, ..launch });
            subgroups += count * in_each;
            workgroups += count;
        }
    }
    for (dispatch, launch) in dispatches.iter_mut().zip(&layout.launches) {
        let Some((_, bindings)) = steps.get(launch.step).and_then(kernel_and_bindings) else { break };
        let Some(program) = programs.get(dispatch.program) else { continue };
        let mut cached = Vec::new();
        for reference in &program.references {
            let (buffer, base, words, each_workgroup, mut home, width) =
                match (bound_memory(reference.place, bindings), reference.place) {
                    (Some((buffer, width)), _) => {
                        let (base, words) = buffers.get(buffer as usize).copied().unwrap_or((0, 0));
                        (buffer, base, words, 0, MEMORY, width)
                    }
                    (None, ReferencePlace::Workgroup(first, words)) => (
                        // Workgroup memory has no buffer: a number that no buffer has, different
                        // for each dispatch.
                        u32::MAX - dispatch.first_workgroup,
                        next + first,
                        words,
                        program.workgroup_words,
                        WORKGROUP,
                        0,
                    ),
                    (None, _) => (0, 0, 0, 0, MEMORY, 0),
                };
            let (sharers, shallow) = uses.get(&buffer).copied().unwrap_or((1, false));
            let direct = reference.write_only && sharers == 1;
            if shallow && home == MEMORY {
                // Only atomics of the widest scope, and no two references to one location: nothing is ever
                // cached.
                home = DEVICE;
            }
            let fresh = homes.len();
            let global = *references.entry((buffer, reference.name.clone())).or_insert(fresh);
            if global == fresh {
                homes.push(home);
                // References with direct stores are in no cache.
                lowest.push(if direct { home } else { reference.lowest });
                classes.push(reference.class);
                host_visible_references.push(host_visible.get(buffer as usize) == Some(&true));
                uniform_scopes.push(reference.uniform_atomic_scope.filter(|_| !reference.aliased));
            } else if let Some(level) = lowest.get_mut(global) {
                // The kernels that share a reference share its caches: the lowest level counts, and
                // one scope only if all agree.
                *level = reference.lowest.min(*level);
                uniform_scopes[global] = uniform_scopes[global]
                    .filter(|scope| reference.uniform_atomic_scope == Some(*scope) && !reference.aliased);
            }
            if !direct && reference.lowest == 0 {
                cached.push(global);
            }
            dispatch.bindings.push(BoundReference {
                reference: global,
                base,
                workgroup_stride: each_workgroup,
                words,
                width,
                has_direct_stores: direct,
            });
        }
        next = program
            .workgroup_words
            .checked_mul(launch.workgroups())
            .and_then(|words| next.checked_add(words))
            // A byte address has 32 bits.
            .filter(|next| *next < 1 << 30)
            .ok_or(DeviceError::OutOfMemory("workgroup memory"))?;
        layout.cached.push(cached);
    }
    // One cache for each invocation, subgroup, workgroup and queue family, and one for the device.
    let queue_families = families.iter().max().map_or(1, |last| *last as usize + 1);
    let shape = CacheShape {
        caches: [invocations as usize, subgroups as usize, workgroups as usize, queue_families, 1],
        parents: [
            layout.parents[0].clone(),
            layout.parents[1].clone(),
            layout.parents[2].clone(),
            vec![0; queue_families],
            Vec::new(),
        ],
        has_uniform_atomic_scope: uniform_scopes.iter().map(Option::is_some).collect(),
        is_host_visible: host_visible_references,
        home_levels: homes,
        lowest_levels: lowest,
        classes,
        has_wide_accesses: programs.iter().any(|program| program.memory.iter().any(|op| op.bytes == 8)),
    };
    machine.begin_submission(subgroups as usize, workgroups as usize, seed);
    machine.memory.words.resize(next as usize, 0);
    machine.memory.reshape(shape, invocations as usize);
    for (dispatch, launch) in dispatches.iter().zip(&layout.launches) {
        let sections =
            programs.get(dispatch.program).is_some_and(|program| program.interlock_is_ordered.is_some());
        if let Some(shaded) = launch.shaded.as_ref().filter(|_| sections) {
            machine.sections.add_fragments(shaded.fragments_in_order(launch.first_invocation).into_iter());
        }
    }
    for (dispatch, launch) in dispatches.iter().zip(&layout.launches) {
        let Some(program) = programs.get(dispatch.program) else { continue };
        initialize_workgroup_memory(program, dispatch, launch.workgroups(), machine, &mut Random::new(!seed));
    }
    Ok((dispatches, layout))
}

/// Fills workgroup memory with arbitrary values, unless the module zero-initializes it.
fn initialize_workgroup_memory(
    program: &Program,
    dispatch: &DispatchState,
    workgroups: u32,
    machine: &mut Machine,
    random: &mut Random,
) {
    for (reference, bound) in program.references.iter().zip(&dispatch.bindings) {
        if bound.workgroup_stride == 0 {
            continue;
        }
        for first in (0..workgroups).map(|group| bound.base + group * bound.workgroup_stride) {
            for address in first..first + bound.words {
                // Memory without an initializer begins with garbage.
                let value = if reference.is_zero_initialized { 0 } else { random.next_word() as u32 };
                machine.memory.poke(address, value);
            }
        }
    }
}

impl SubmissionLayout {
    /// Builds the waves of the dispatches of a phase: up to `max_lanes` invocations of one role share one.
    pub fn build_waves(
        &self,
        steps: &[usize],
        launched: Launched<'_>,
        machine: &mut Machine,
        max_lanes: usize,
    ) -> Vec<Wave> {
        let mut waves = Vec::new();
        for number in steps.iter().filter_map(|step| self.dispatches_of_step.get(step)).flatten().copied() {
            let Some(dispatch) = launched.dispatches.get(number) else { continue };
            let Some(program) = launched.program(number) else { continue };
            let max_lanes = if program.independent_invocations { 1 } else { max_lanes };
            let all = self.invocations(number, dispatch, machine);
            if program.interlock_is_ordered.is_some() {
                // Fragments of one wave must not wait for each other.
                let before = |who: &Invocation| machine.sections.count_predecessors(who.0[0]);
                let mut all: Vec<_> = all.into_iter().map(|who| (before(&who), who)).collect();
                all.sort_by_key(|(before, _)| *before);
                for same in all.chunk_by(|left, right| left.0 == right.0) {
                    let same: Vec<Invocation> = same.iter().map(|(_, who)| *who).collect();
                    let fault = machine.fault();
                    waves.extend(same.chunks(max_lanes).map(|some| build_wave(number, program, some, fault)));
                }
            } else if !program.role_selectors.is_empty() {
                // Lanes of one wave execute in lockstep, so invocations with different roles are
                // separate. Otherwise the threads of a test would not interleave.
                let mut keyed: Vec<(Vec<u32>, Invocation)> = Vec::with_capacity(all.len());
                for some in all.chunks(LANES) {
                    let mut wave = build_wave(number, program, some, machine.fault());
                    let keys = wave.collect_role_keys(&mut machine.wave_context(program, dispatch));
                    keyed.extend(keys.into_iter().zip(some.iter().copied()));
                }
                keyed.sort_by(|left, right| left.0.cmp(&right.0));
                for same in keyed.chunk_by(|left, right| left.0 == right.0) {
                    let same: Vec<Invocation> = same.iter().map(|(_, who)| *who).collect();
                    let fault = machine.fault();
                    waves.extend(same.chunks(max_lanes).map(|some| build_wave(number, program, some, fault)));
                }
            } else {
                let fault = machine.fault();
                waves.extend(all.chunks(max_lanes).map(|some| build_wave(number, program, some, fault)));
            }
        }
        waves
    }

    /// Returns the caches and position of every invocation of a dispatch.
    fn invocations(&self, number: usize, dispatch: &DispatchState, machine: &mut Machine) -> Vec<Invocation> {
        let Some(launch) = self.launches.get(number) else { return Vec::new() };
        let mut all = Vec::with_capacity(launch.invocations as usize);
        for group in 0..launch.workgroups() {
            let workgroup = dispatch.first_workgroup + group;
            let size = launch.size.min(launch.invocations - group * launch.size);
            machine.add_barrier_group(WORKGROUP, workgroup, size);
            for local in 0..size {
                let subgroup =
                    launch.first_subgroup + group * launch.subgroups_per_workgroup() + local / SUBGROUP_SIZE;
                let lane = local % SUBGROUP_SIZE;
                if lane == 0 {
                    machine.add_barrier_group(SUBGROUP, subgroup, (size - local).min(SUBGROUP_SIZE));
                }
                let family = self.parents[2].get(workgroup as usize).copied().unwrap_or(0);
                let number = group * launch.size + local;
                let path = [launch.first_invocation + number, subgroup, workgroup, family, 0];
                // Of a compute invocation: workgroup, local index, subgroup and lane.
                let place = match &launch.shaded {
                    Some(shaded) => shaded.places.get(number as usize).copied().unwrap_or_default(),
                    None => [group, local, local / SUBGROUP_SIZE, lane],
                };
                all.push((path, place));
            }
        }
        all
    }

    /// Corrupts memory that kernels read; for a fault.
    pub fn corrupt_memory(&self, dispatches: &[DispatchState], machine: &mut Machine) {
        for bound in dispatches.iter().flat_map(|dispatch| &dispatch.bindings) {
            if bound.has_direct_stores || bound.workgroup_stride > 0 {
                continue;
            }
            for address in bound.base..bound.base + bound.words {
                if machine.random.chance(2) {
                    let garbage = machine.random.next_word() as u32 & 0xff_ff00;
                    machine.memory.poke(address, garbage);
                }
            }
        }
    }
}

fn build_wave(number: usize, program: &Program, some: &[Invocation], fault: Fault) -> Wave {
    let (paths, places) = some.iter().copied().unzip();
    let mut wave = Wave::new(number, program, paths, places);
    if program.stage == Stage::Fragment && fault != Fault::HelperStores {
        let lanes = wave.places.iter().enumerate();
        wave.helpers = lanes.fold(0, |helpers, (lane, place)| helpers | u64::from(place[2]) << lane);
    }
    wave
}
