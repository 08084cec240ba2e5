//! The placement of threads on invocations: workgroup classes, subgroup classes and lanes.

use litmus::{Placement, Scope, Test, ThreadId, ThreadPlace};

use crate::carrier::MAX_MESH_INVOCATIONS;
use crate::flow;
use crate::kernel::{CompileError, KernelConfig};
use crate::rules::Rule;
use crate::variant::{CarrierStage, SubgroupSize, WorkgroupCount};

/// The placement of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub class: u32,
    /// Subgroup class within the workgroup class.
    pub subgroup: u32,
    /// Index among the roles of its subgroup class: it has the lanes from `share × lanes` on.
    pub share: u32,
}

/// The division of a workgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkgroupLayout {
    pub roles: Vec<Role>,
    /// Threads by workgroup class.
    pub classes: Vec<Vec<ThreadId>>,
    /// Slots of a workgroup.
    pub lanes: u32,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// The same in x, y and z.
    pub shape: [u32; 3],
    /// Invocations are assigned by their index in the workgroup: `lanes` consecutive ones for each role form
    /// a virtual subgroup.
    pub has_virtual_subgroups: bool,
    /// Subgroups or virtual subgroups of a workgroup if the division depends on them, else 1.
    pub subgroups: u32,
    /// The subgroup size that the division depends on; `None` if every thread has its own workgroup.
    pub subgroup_size: Option<u32>,
}

impl WorkgroupLayout {
    /// Divides workgroups for a test that [`rules::check`](crate::rules::check) accepts, with at most
    /// `max_lanes` slots.
    pub fn new(test: &Test, config: &KernelConfig, max_lanes: u32) -> Result<WorkgroupLayout, CompileError> {
        let config = &apply_stage_limits(config);
        // All lanes that execute a subgroup operation take part in it, as do those at a barrier under a
        // branch. So a subgroup runs only one instance.
        let max_lanes = if test.has_tangles() { 1 } else { max_lanes };
        let mut placements: Vec<Placement> = Vec::with_capacity(test.threads.len());
        for thread in &test.threads {
            match thread.place {
                ThreadPlace::Device(placement) => placements.push(placement),
                ThreadPlace::Host => return Err(Rule::HostThread.into()),
            }
        }
        if !config.variant.stage.has_workgroups() {
            // The test does not depend on sharing a workgroup, so every thread may have its own.
            for (number, placement) in (0..).zip(&mut placements) {
                placement.workgroup = number;
            }
        }
        let size = config.variant.shape.size(config.max_workgroup_invocations, config.max_workgroup_size);
        let has_subgroup_size = config.variant.subgroup_size != SubgroupSize::Unspecified;
        let has_shape = size.is_some() || config.variant.workgroup_count != WorkgroupCount::Random;
        let stage = config.variant.stage;
        Rule::StageShape.when(
            has_shape && !stage.has_workgroups() || has_subgroup_size && stage != CarrierStage::Compute,
        )?;
        // Class c is the c-th distinct workgroup in the order of the threads, and likewise for subgroups.
        let mut workgroups: Vec<u32> = Vec::new();
        let mut subgroups: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut classes: Vec<Vec<ThreadId>> = Vec::new();
        let mut roles = Vec::with_capacity(placements.len());
        for (thread, placement) in placements.iter().enumerate() {
            let class = position_or_push(
                &mut workgroups,
                |number| *number == placement.workgroup,
                || placement.workgroup,
            );
            if class == classes.len() {
                classes.push(Vec::new());
                subgroups.push(Vec::new());
            }
            classes[class].push(ThreadId(thread as u16));
            let members = &mut subgroups[class];
            let subgroup = position_or_push(
                members,
                |(number, _)| *number == placement.subgroup,
                || (placement.subgroup, 0),
            );
            let share = members[subgroup].1;
            members[subgroup].1 += 1;
            roles.push(Role { class: class as u32, subgroup: subgroup as u32, share });
        }

        let loops = test.threads.iter().any(flow::has_loop);
        if let Some(shape) = size {
            let max_lanes = max_lanes.min(if loops { config.max_lanes_with_loops } else { u32::MAX });
            return WorkgroupLayout::with_shape(test, config, roles, classes, shape, max_lanes);
        }
        if classes.iter().all(|threads| threads.len() == 1) {
            let vertex = config.variant.stage == CarrierStage::Vertex;
            let lanes = if vertex { config.vertex_lanes } else { config.lanes };
            let lanes = lanes.min(if loops { config.max_lanes_with_loops } else { u32::MAX });
            let lanes = lanes.min(max_lanes).max(1);
            if !vertex {
                check_workgroup_size(lanes, config)?;
            }
            return Ok(WorkgroupLayout {
                roles,
                classes,
                lanes,
                workgroup_size: lanes,
                shape: [lanes, 1, 1],
                has_virtual_subgroups: false,
                subgroups: 1,
                subgroup_size: None,
            });
        }
        if stage != CarrierStage::Compute {
            // Only compute pipelines can require full subgroups, so each role has as many invocations as a
            // subgroup.
            let max_threads = classes.iter().map(Vec::len).max().unwrap_or(1) as u32;
            let shape = [config.subgroup_size.saturating_mul(max_threads), 1, 1];
            return WorkgroupLayout::with_shape(test, config, roles, classes, shape, max_lanes);
        }
        Rule::VaryingSubgroups.when(config.variant.subgroup_size == SubgroupSize::Varying)?;
        let largest_share = subgroups.iter().flatten().map(|(_, count)| *count).max().unwrap_or(1);
        let most_subgroups = subgroups.iter().map(Vec::len).max().unwrap_or(1) as u32;
        let lanes = (config.subgroup_size / largest_share).min(max_lanes);
        Rule::SubgroupTooSmall.when(lanes == 0)?;
        let workgroup_size = config.subgroup_size.saturating_mul(most_subgroups);
        check_workgroup_size(workgroup_size, config)?;
        let (subgroups, subgroup_size) = (most_subgroups, Some(config.subgroup_size));
        let shape = [workgroup_size, 1, 1];
        Ok(WorkgroupLayout {
            roles,
            classes,
            lanes,
            workgroup_size,
            shape,
            has_virtual_subgroups: false,
            subgroups,
            subgroup_size,
        })
    }

    /// Lays out workgroups of a given size, whose subgroups may be partial, so that nothing may depend on
    /// which invocations share one. Each role has an equal number of consecutive invocations.
    fn with_shape(
        test: &Test,
        config: &KernelConfig,
        mut roles: Vec<Role>,
        classes: Vec<Vec<ThreadId>>,
        shape: [u32; 3],
        max_lanes: u32,
    ) -> Result<WorkgroupLayout, CompileError> {
        for (wanted, most) in shape.into_iter().zip(config.max_workgroup_size) {
            if wanted > most {
                return Err(CompileError::WorkgroupTooLarge { needed: wanted, available: most });
            }
        }
        let workgroup_size = shape.into_iter().fold(1, u32::saturating_mul);
        check_workgroup_size(workgroup_size, config)?;
        let subgroups = classes.iter().map(Vec::len).max().unwrap_or(1) as u32;
        Rule::SubgroupsInShapedWorkgroup.when(subgroups > 1 && depends_on_subgroups(test))?;
        let lanes = (workgroup_size / subgroups).min(max_lanes);
        Rule::ShapeTooSmall.when(lanes == 0)?;
        for (index, role) in roles.iter_mut().enumerate() {
            let class = classes.get(role.class as usize);
            let place = class.and_then(|own| own.iter().position(|thread| usize::from(thread.0) == index));
            (role.subgroup, role.share) = (place.unwrap_or(0) as u32, 0);
        }
        let divided = lanes < workgroup_size;
        Ok(WorkgroupLayout {
            roles,
            classes,
            lanes,
            workgroup_size,
            shape,
            has_virtual_subgroups: divided,
            subgroups,
            subgroup_size: None,
        })
    }
}

/// Returns true if the test depends on which threads share a subgroup.
fn depends_on_subgroups(test: &Test) -> bool {
    let mut kinds = test.threads.iter().flat_map(|thread| &thread.instructions).map(|own| &own.kind);
    test.has_tangles()
        || kinds.any(|kind| [kind.execution_scope(), kind.memory_scope()].contains(&Some(Scope::Subgroup)))
}

/// Applies the limits that every device with the stage supports: mesh and task shaders have their own.
fn apply_stage_limits(config: &KernelConfig) -> KernelConfig {
    if !config.variant.stage.is_mesh_pipeline() {
        return *config;
    }
    let limit = MAX_MESH_INVOCATIONS;
    KernelConfig {
        lanes: config.lanes.min(limit),
        max_workgroup_invocations: config.max_workgroup_invocations.min(limit),
        max_workgroup_size: config.max_workgroup_size.map(|size| size.min(limit)),
        ..*config
    }
}

fn check_workgroup_size(needed: u32, config: &KernelConfig) -> Result<(), CompileError> {
    let available = config.max_workgroup_invocations;
    if needed > available { Err(CompileError::WorkgroupTooLarge { needed, available }) } else { Ok(()) }
}

fn position_or_push<T>(list: &mut Vec<T>, found: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> usize {
    list.iter().position(found).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    })
}
