//! The launch of a kernel: sizes, constants and initial contents, from options and annotations.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use rspirv::spirv::BuiltIn;
use spirv_reader::{
    BarrierPart, BuiltInComponents, SourcePosition, Specialized, SpirvConstant, SpirvModule, SpirvOperation,
    Stage, annotations::Initial, extended_instruction_number,
};

use crate::error::{Problem, Refusal, unsupported};
use crate::finding::InvocationId;
use crate::layout::local_size_of;
use crate::options::AnalysisOptions;

pub struct LaunchParameters<'a> {
    /// Initial values of variables and constants.
    pub inputs: HashMap<u32, &'a Initial>,
    pub values_by_spec_id: HashMap<u32, u64>,
    pub values_by_result: HashMap<u32, Initial>,
    pub local_size: [u32; 3],
    pub grid: [u32; 3],
    /// The annotated configuration: invocations per subgroup, subgroups per workgroup, workgroups.
    pub config: Option<[u32; 3]>,
    pub is_annotated: bool,
}

impl<'a> LaunchParameters<'a> {
    pub fn new(
        module: &'a SpirvModule,
        options: &AnalysisOptions,
        function: u32,
    ) -> Result<LaunchParameters<'a>, Problem> {
        let annotations = &module.annotations;
        let annotated = annotations != &spirv_reader::annotations::Annotations::default();
        let inputs: HashMap<u32, &Initial> = annotations
            .inputs
            .iter()
            .map(|(name, initial)| match module.id_by_name(name) {
                Some(id) => Ok((id, initial)),
                None => Err(Problem::Annotation(format!("no `%{name}` in the module"))),
            })
            .collect::<Result<_, _>>()?;
        let by_result: HashMap<u32, Initial> = inputs
            .iter()
            .filter(|(id, _)| module.constants.contains_key(id))
            .map(|(id, initial)| (*id, (*initial).clone()))
            .collect();
        // The local size may be specialized.
        let mut by_id = options.specialization.clone();
        let config = annotations.config.or(annotated.then_some([1, 1, 1]));
        // A given grid replaces the configuration of annotations.
        let local_size = match config.filter(|_| options.grid.is_none()) {
            Some([invocations, subgroups, _]) => [invocations.saturating_mul(subgroups), 1, 1],
            None => local_size_of(module, &by_id, &by_result, function)?,
        };
        let workgroups = config.map_or([1, 1, 1], |[_, _, workgroups]| [workgroups, 1, 1]);
        let grid = options.grid.unwrap_or(workgroups);
        let none = match (grid.contains(&0), local_size.contains(&0)) {
            (true, _) => Some("a grid without workgroups"),
            (_, true) => Some("a workgroup without invocations"),
            _ => None,
        };
        if let Some(none) = none {
            return Err(Problem::Input(none.to_owned()));
        }
        // In kernels of clspv, specialization constants hold the local size and the number of dimensions.
        let dimensions = (0..3).rev().find(|axis| grid[*axis] > 1 || local_size[*axis] > 1).unwrap_or(0) + 1;
        for (name, values) in
            [("SpecConstantWorkgroupSize", &local_size[..]), ("SpecConstantWorkDim", &[dimensions as u32])]
        {
            for (_, operands) in reflection_of(module, name) {
                for (value, id) in values.iter().zip(operands) {
                    if let Some((_, SpirvConstant::Scalar(number))) = module.constants.get(id) {
                        by_id.entry(*number as u32).or_insert(u64::from(*value));
                    }
                }
            }
        }
        Ok(LaunchParameters {
            inputs,
            values_by_spec_id: by_id,
            values_by_result: by_result,
            local_size,
            grid,
            config,
            is_annotated: annotated,
        })
    }
}

/// The shape of a launch, as built-in inputs show it to invocations.
#[derive(Clone, Copy, Debug)]
pub struct LaunchShape {
    pub stage: Stage,
    pub grid: [u32; 3],
    pub local_size: [u32; 3],
    pub subgroup_size: u32,
}

impl LaunchShape {
    /// Returns a built-in vector of sizes or positions; `None` for other built-ins.
    pub fn position(&self, built_in: BuiltIn, me: &InvocationId) -> Option<[u32; 3]> {
        Some(match built_in {
            BuiltIn::NumWorkgroups => self.grid,
            BuiltIn::WorkgroupSize => self.local_size,
            BuiltIn::WorkgroupId => me.workgroup,
            BuiltIn::LocalInvocationId => me.local,
            BuiltIn::GlobalInvocationId => [0, 1, 2].map(|axis: usize| {
                me.workgroup[axis].wrapping_mul(self.local_size[axis]).wrapping_add(me.local[axis])
            }),
            _ => return None,
        })
    }

    /// Returns the components of a built-in input; `None` for one that is not computed.
    ///
    /// The components are empty if the value is unknown.
    pub fn built_in_components(&self, built_in: BuiltIn, me: &InvocationId) -> Option<BuiltInComponents> {
        if let Some(components) = self.stage.built_in_components(built_in, me.workgroup) {
            return Some(components);
        }
        if let Some(position) = self.position(built_in, me) {
            return Some(position.map(Some).to_vec());
        }
        let size = self.subgroup_size.max(1);
        let lane = me.local_index % size;
        // A mask of lanes has four words of 32 bits, for every size of the subgroup.
        let lanes = |lanes: Range<u32>| {
            let bits = lanes.fold(0_u128, |all, lane| all | 1 << lane);
            [0, 32, 64, 96].map(|first| Some((bits >> first) as u32)).to_vec()
        };
        let count: u32 = self.local_size.iter().fold(1, |all, size| all.saturating_mul(*size));
        Some(match built_in {
            BuiltIn::LocalInvocationIndex => vec![Some(me.local_index)],
            BuiltIn::SubgroupSize => vec![Some(self.subgroup_size)],
            BuiltIn::NumSubgroups => vec![Some(count.div_ceil(size))],
            BuiltIn::SubgroupId => vec![Some(me.local_index / size)],
            BuiltIn::SubgroupLocalInvocationId => vec![Some(lane)],
            BuiltIn::SubgroupEqMask => lanes(lane..lane + 1),
            BuiltIn::SubgroupLtMask => lanes(0..lane),
            BuiltIn::SubgroupLeMask => lanes(0..lane + 1),
            BuiltIn::SubgroupGtMask => lanes(lane + 1..size),
            BuiltIn::SubgroupGeMask => lanes(lane..size),
            BuiltIn::DeviceIndex | BuiltIn::ViewIndex => vec![Some(0)],
            _ => return None,
        })
    }
}

/// A grid of more than one workgroup, vertex or fragment.
#[derive(Clone, Copy, Debug)]
pub struct WiderGrid {
    pub grid: [u32; 3],
    /// The option that gives it.
    pub option: &'static str,
    /// The option and its meaning.
    pub description: &'static str,
}

/// Returns a grid of more than one workgroup, vertex or fragment.
pub fn wider_grid(stage: Stage) -> WiderGrid {
    let (grid, option, description) = match stage {
        Stage::Compute | Stage::Task | Stage::Mesh => ([2, 1, 1], "--grid 2", "2 workgroups (--grid 2)"),
        Stage::Vertex => ([2, 1, 1], "--grid 2", "2 vertices (--grid 2)"),
        Stage::Fragment => ([2, 1, 2], "--grid 2,1,2", "2 fragments of each of 2 pixels (--grid 2,1,2)"),
    };
    WiderGrid { grid, option, description }
}

/// Returns the workgroups that options let run, or none if all run.
///
/// At any time of a dispatch, an implementation may not have started some workgroups yet. So what the others do alone is
/// a part of an execution of the whole grid.
pub fn running_workgroups(
    options: &AnalysisOptions,
    stage: Stage,
    grid: [u32; 3],
) -> Result<Vec<[u32; 3]>, Problem> {
    if !options.workgroups.is_empty() && !stage.has_workgroups() {
        return Err(Problem::Input("workgroups are chosen, and the stage has none".to_owned()));
    }
    let mut chosen = options.workgroups.clone();
    chosen.sort_unstable_by_key(|[x, y, z]| [*z, *y, *x]);
    chosen.dedup();
    let is_outside = |at: &&[u32; 3]| at.iter().zip(grid).any(|(own, count)| *own >= count);
    match chosen.iter().find(is_outside) {
        Some([x, y, z]) => Err(Problem::Input(format!(
            "workgroup {x},{y},{z} is not in the grid {},{},{}; give a larger --grid",
            grid[0], grid[1], grid[2]
        ))),
        None => Ok(chosen),
    }
}

/// Returns the positions with the given coordinates, in the order of linear indices: x varies fastest.
pub fn positions_at(coordinates: &[BTreeSet<u32>; 3]) -> Vec<[u32; 3]> {
    let [xs, ys, zs] = coordinates;
    let planes = zs.iter().flat_map(|z| ys.iter().map(move |y| (*y, *z)));
    planes.flat_map(|(y, z)| xs.iter().map(move |x| [*x, y, z])).collect()
}

/// Returns the coordinates of the first two and of the last workgroup along an axis.
pub fn end_coordinates(count: u32) -> BTreeSet<u32> {
    [0, 1, count.saturating_sub(1)].into_iter().filter(|at| *at < count).collect()
}

/// Returns the instructions of clspv's reflection with a name.
fn reflection_of<'m>(module: &'m SpirvModule, name: &str) -> impl Iterator<Item = &'m (u32, Vec<u32>)> {
    let number = extended_instruction_number("NonSemantic.ClspvReflection", name);
    module.reflection.iter().filter(move |(own, _)| Some(*own) == number)
}

/// The push constants that clspv's reflection defines by the grid.
const REFLECTED_PUSH: [&str; 6] = [
    "PushConstantGlobalOffset",
    "PushConstantEnqueuedLocalSize",
    "PushConstantGlobalSize",
    "PushConstantRegionOffset",
    "PushConstantNumWorkgroups",
    "PushConstantRegionGroupOffset",
];

/// Returns the offsets of the push constants that clspv's reflection defines by the grid.
pub(crate) fn reflected_push_ranges(specialized: &Specialized<'_>) -> Vec<Range<u64>> {
    let instructions = REFLECTED_PUSH.into_iter().flat_map(|name| reflection_of(specialized.module, name));
    let start = |(_, operands): &(u32, Vec<u32>)| specialized.constant_number(*operands.first()?);
    instructions.filter_map(start).map(|start| start..start + 12).collect()
}

/// Returns the push constants that clspv's reflection defines: sizes and offsets of the grid.
pub fn reflected_push_constants(
    specialized: &Specialized<'_>,
    grid: [u32; 3],
    local_size: [u32; 3],
) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    let total = |axis: usize| grid[axis].wrapping_mul(local_size[axis]);
    let total = [total(0), total(1), total(2)];
    let values = [[0; 3], local_size, total, [0; 3], grid, [0; 3]];
    for (name, values) in REFLECTED_PUSH.into_iter().zip(values) {
        for (_, operands) in reflection_of(specialized.module, name) {
            let offset = operands.first().and_then(|id| specialized.constant_number(*id));
            let axes = offset.into_iter().flat_map(|offset| (offset..).step_by(4));
            found.extend(axes.zip(values.map(u64::from)));
        }
    }
    found
}

/// Returns an invocation's `size` bytes of the given input, which repeats if it is too short.
pub fn invocation_share(all: &[u8], size: u64, invocation: u32) -> Option<&[u8]> {
    let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
    let count = all.len() / size;
    let first = (invocation as usize).checked_rem(count)? * size;
    all.get(first..first + size)
}

/// Checks that an entry point's functions use nothing that its stage leaves unspecified.
///
/// # Errors
/// Returns the first such instruction with its position.
pub fn check_stage(module: &SpirvModule, stage: Stage, grid: Option<[u32; 3]>) -> Result<(), Refusal> {
    let word = match stage {
        Stage::Compute | Stage::Task | Stage::Mesh => return Ok(()),
        Stage::Vertex => "vertex",
        Stage::Fragment => "fragment",
    };
    if stage == Stage::Vertex && grid.is_some_and(|[.., z]| z != 1) {
        let what = "a grid of vertices counts vertices and instances: its third number is 1".to_owned();
        return Err(Problem::Annotation(what).located_at(SourcePosition::Module));
    }
    for function in module.functions.values() {
        for instruction in &function.code {
            let what = match module.operation(instruction) {
                SpirvOperation::ControlBarrier { part: BarrierPart::Whole, .. } => {
                    format!(
                        "a control barrier in a {word} shader (no workgroups: VUID-StandaloneSpirv-None-04637)"
                    )
                }
                SpirvOperation::Subgroup(_) | SpirvOperation::BallotQuery { .. } => {
                    format!(
                        "Op{:?} in a {word} shader: the invocations of a subgroup are unknown before \
                         execution",
                        instruction.op
                    )
                }
                _ => continue,
            };
            let line = module.source_line(instruction.line);
            return Err(unsupported(what)
                .located_at(line.map_or(instruction.place, |line| SourcePosition::Line(line.line))));
        }
    }
    Ok(())
}
