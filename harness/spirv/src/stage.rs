//! The supported shader stages, and the built-in inputs of their invocations.
//!
//! Vertices and fragments have no workgroups. Each counts as its own workgroup with one lane, because
//! subgroup membership is unspecified ("Shader Execution", "Subgroup" in the Vulkan specification); shaders
//! that depend on it are refused. Primitive order does not order memory between invocations of a draw
//! ("Shader Memory Access Ordering").
//!
//! A graphics grid counts vertices and instances, or covered pixels in x and y and the primitives that cover
//! each. Helper invocations have no effect on memory and are not executed.
//!
//! Task and mesh shaders have workgroups like compute shaders. The payload is memory shared by the task
//! shader's workgroup, and an input of a mesh shader. Mesh outputs are shared by the workgroup, so two
//! invocations may write the same output. Only semantics for workgroup memory exist for them (VK-SEM-12), so
//! these are taken to order them.

use rspirv::spirv::{BuiltIn, ExecutionModel};

/// A supported shader stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    #[default]
    Compute,
    Vertex,
    Fragment,
    Task,
    Mesh,
}

/// The components of a built-in variable; `None` for an unknown component.
pub type BuiltInComponents = Vec<Option<u32>>;

impl Stage {
    /// Returns the stage of an execution model; `None` if unsupported.
    pub fn from_execution_model(model: ExecutionModel) -> Option<Stage> {
        match model {
            ExecutionModel::GLCompute => Some(Stage::Compute),
            ExecutionModel::Vertex => Some(Stage::Vertex),
            ExecutionModel::Fragment => Some(Stage::Fragment),
            ExecutionModel::TaskEXT => Some(Stage::Task),
            ExecutionModel::MeshEXT => Some(Stage::Mesh),
            _ => None,
        }
    }

    /// Returns true if invocations form workgroups with shared memory, barriers and subgroups.
    pub fn has_workgroups(self) -> bool {
        matches!(self, Stage::Compute | Stage::Task | Stage::Mesh)
    }

    /// Returns true if inputs come from outside of the kernel.
    pub fn has_external_inputs(self) -> bool {
        matches!(self, Stage::Vertex | Stage::Fragment | Stage::Mesh)
    }

    /// Returns a built-in input of a graphics stage at a grid position; `None` for other built-ins.
    ///
    /// The components are empty if the value is unknown.
    pub fn built_in_components(self, built_in: BuiltIn, [x, y, z]: [u32; 3]) -> Option<BuiltInComponents> {
        let pixel_center = |pixel: u32| Some((pixel as f32 + 0.5).to_bits());
        Some(match (self, built_in) {
            (Stage::Task | Stage::Mesh, BuiltIn::DrawIndex) => vec![Some(0)],
            (Stage::Compute | Stage::Task | Stage::Mesh, _) => return None,
            (Stage::Vertex, BuiltIn::VertexIndex) => vec![Some(x)],
            (Stage::Vertex, BuiltIn::InstanceIndex) => vec![Some(y)],
            (Stage::Vertex, BuiltIn::BaseVertex | BuiltIn::BaseInstance | BuiltIn::DrawIndex) => {
                vec![Some(0)]
            }
            (Stage::Fragment, BuiltIn::FragCoord) => vec![pixel_center(x), pixel_center(y), None, None],
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

    /// Describes a number of invocations.
    pub fn describe_count(self, grid: [u32; 3]) -> Option<String> {
        let [x, y, z] = grid;
        let count_of = |count: u32, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        match self {
            Stage::Compute | Stage::Task | Stage::Mesh => None,
            Stage::Vertex if y == 1 => Some(count_of(x, "vertex").replace("vertexs", "vertices")),
            Stage::Vertex => Some(format!("{x} vertices of each of {y} instances")),
            Stage::Fragment => Some(format!("{x} by {y} pixels, {} of each", count_of(z, "fragment"))),
        }
    }
}
