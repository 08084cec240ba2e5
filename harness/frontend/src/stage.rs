//! The stages of shaders that are walked, and what an invocation of each is told about itself.
//!
//! Vertices and fragments have no workgroups and no memory of such: each is a workgroup of its own, with itself alone in its subgroup.
//! Which of them share a subgroup is known only when they run ("Shader Execution", "Subgroup" of the specification), so that what
//! rests on it is refused by name. What one invocation of a draw wrote is ordered before nothing of another one, whatever the order of
//! primitives is ("Shader Memory Access Ordering"): they are walked like invocations of a dispatch.
//!
//! A grid counts vertices, and instances of a draw; or pixels in x and y that are covered, and the primitives that cover each. Every
//! invocation is walked once and none as a helper: helpers have no effect on memory.
//!
//! Task and mesh shaders have workgroups as compute shaders have. The payload is memory that the workgroup of a task shader shares, and an
//! input of a mesh shader. The outputs of a mesh shader are one for the whole workgroup, so that two invocations may write the same; no
//! semantics but those of workgroup memory name them outside of tessellation (VK-SEM-12), so that what orders that memory is taken to
//! order them too.

use rspirv::spirv::{BuiltIn, ExecutionModel, Op};

use crate::error::{Place, Problem, Refusal, unsupported};
use crate::module::Module;

/// A stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Compute shaders.
    #[default]
    Compute,
    /// Vertex shaders.
    Vertex,
    /// Fragment shaders.
    Fragment,
    /// Task shaders.
    Task,
    /// Mesh shaders.
    Mesh,
}

/// What a built-in variable holds: its components, each a number, or nothing where it is not followed.
pub(crate) type Told = Vec<Option<u32>>;

impl Stage {
    /// The stage of an entry point; `None` for those that are not walked.
    pub fn of(model: ExecutionModel) -> Option<Stage> {
        match model {
            ExecutionModel::GLCompute => Some(Stage::Compute),
            ExecutionModel::Vertex => Some(Stage::Vertex),
            ExecutionModel::Fragment => Some(Stage::Fragment),
            ExecutionModel::TaskEXT => Some(Stage::Task),
            ExecutionModel::MeshEXT => Some(Stage::Mesh),
            _ => None,
        }
    }

    /// Whether its invocations come in workgroups, with memory, barriers and subgroups of these.
    pub fn has_workgroups(self) -> bool {
        matches!(self, Stage::Compute | Stage::Task | Stage::Mesh)
    }

    /// Whether what it reads of its inputs is what somebody else gave.
    pub(crate) fn is_given(self) -> bool {
        matches!(self, Stage::Vertex | Stage::Fragment | Stage::Mesh)
    }

    /// What a built-in input of a graphics stage holds at a place of the grid; `None` where it is none of those. No component where
    /// nothing of it is followed.
    pub(crate) fn told(self, built_in: BuiltIn, [x, y, z]: [u32; 3]) -> Option<Told> {
        let middle = |pixel: u32| Some((pixel as f32 + 0.5).to_bits());
        Some(match (self, built_in) {
            (Stage::Task | Stage::Mesh, BuiltIn::DrawIndex) => vec![Some(0)],
            (Stage::Compute | Stage::Task | Stage::Mesh, _) => return None,
            (Stage::Vertex, BuiltIn::VertexIndex) => vec![Some(x)],
            (Stage::Vertex, BuiltIn::InstanceIndex) => vec![Some(y)],
            (Stage::Vertex, BuiltIn::BaseVertex | BuiltIn::BaseInstance | BuiltIn::DrawIndex) => {
                vec![Some(0)]
            }
            (Stage::Fragment, BuiltIn::FragCoord) => vec![middle(x), middle(y), None, None],
            (Stage::Fragment, BuiltIn::PrimitiveId) => vec![Some(z)],
            (Stage::Fragment, BuiltIn::HelperInvocation | BuiltIn::SampleId) => vec![Some(0)],
            (Stage::Fragment, BuiltIn::Layer | BuiltIn::ViewportIndex) => vec![Some(0)],
            (
                Stage::Fragment,
                BuiltIn::FrontFacing
                | BuiltIn::PointCoord
                | BuiltIn::SamplePosition
                | BuiltIn::SampleMask
                | BuiltIn::ClipDistance
                | BuiltIn::CullDistance
                | BuiltIn::BaryCoordKHR
                | BuiltIn::BaryCoordNoPerspKHR,
            ) => Vec::new(),
            _ => return None,
        })
    }

    /// What a count of invocations counts, in words.
    pub fn counted(self, grid: [u32; 3]) -> Option<String> {
        let [x, y, z] = grid;
        let of = |count: u32, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        match self {
            Stage::Compute | Stage::Task | Stage::Mesh => None,
            Stage::Vertex if y == 1 => Some(of(x, "vertex").replace("vertexs", "vertices")),
            Stage::Vertex => Some(format!("{x} vertices of each of {y} instances")),
            Stage::Fragment => Some(format!("{x} by {y} pixels, {} of each", of(z, "fragment"))),
        }
    }
}

/// Whether an instruction tells how something changes from pixel to pixel: that is not followed.
pub(crate) fn is_derivative(op: Op) -> bool {
    matches!(
        op,
        Op::DPdx
            | Op::DPdy
            | Op::Fwidth
            | Op::DPdxFine
            | Op::DPdyFine
            | Op::FwidthFine
            | Op::DPdxCoarse
            | Op::DPdyCoarse
            | Op::FwidthCoarse
    )
}

/// What an invocation has of what all are given: `size` bytes for each, from the start again where there are no more.
pub(crate) fn share_of(all: &[u8], size: u64, invocation: u32) -> Option<&[u8]> {
    let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
    let count = all.len() / size;
    let first = (invocation as usize).checked_rem(count)? * size;
    all.get(first..first + size)
}

/// Looks through a module for what the invocations of a graphics stage cannot do or nobody knows of them, for the functions of an entry
/// point.
///
/// # Errors
/// The first such instruction, by name and with its place.
pub(crate) fn check(module: &Module, stage: Stage, grid: Option<[u32; 3]>) -> Result<(), Refusal> {
    let word = match stage {
        Stage::Compute | Stage::Task | Stage::Mesh => return Ok(()),
        Stage::Vertex => "vertex",
        Stage::Fragment => "fragment",
    };
    if stage == Stage::Vertex && grid.is_some_and(|[.., z]| z != 1) {
        let what = "a grid of vertices counts vertices and instances: its third number is 1".to_owned();
        return Err(Problem::Annotation(what).at(Place::Module));
    }
    for function in module.functions.values() {
        for instruction in &function.code {
            let name = format!("{:?}", instruction.op);
            let what = match instruction.op {
                Op::ControlBarrier => {
                    format!(
                        "a control barrier in a {word} shader (no workgroups: VUID-StandaloneSpirv-None-04637)"
                    )
                }
                _ if name.starts_with("Group") => {
                    format!(
                        "Op{name} in a {word} shader: which invocations share a subgroup is known only when they run"
                    )
                }
                _ => continue,
            };
            let line = module.source_line(instruction.line);
            return Err(unsupported(what).at(line.map_or(instruction.place, |line| Place::Line(line.line))));
        }
    }
    Ok(())
}
