//! Shader stages, and the draws of graphics stages.

use serde::{Deserialize, Serialize};
use vocabulary::{Feature, StageMask};

/// The stage of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KernelStage {
    /// Invocations of a compute dispatch.
    #[default]
    Compute,
    /// Vertices of a point list, without rasterization.
    Vertex,
    /// Fragments of a point list.
    Fragment {
        /// SPIR-V words of the vertex shader that positions the points; entry point `main`, without bindings
        /// and push constants.
        vertex_shader: Vec<u32>,
    },
    /// Vertices, and fragments of the points that they position, in one draw.
    VertexAndFragment {
        /// SPIR-V words of the vertex shader, with entry point `main` and the bindings and push constants of
        /// the kernel. The kernel's own words are the fragment shader.
        vertex_shader: Vec<u32>,
    },
    /// Workgroups of a mesh shader without primitives; they are [dispatched](crate::PlanStep::Dispatch).
    Mesh,
    /// Workgroups of a task shader that launches no mesh shader; they are
    /// [dispatched](crate::PlanStep::Dispatch).
    Task {
        /// SPIR-V words of the mesh shader that completes the pipeline; entry point `main`, without bindings
        /// and push constants.
        mesh_shader: Vec<u32>,
    },
}

impl KernelStage {
    /// Returns true if the stage has workgroups and is dispatched; the others are drawn.
    pub fn has_workgroups(&self) -> bool {
        matches!(self, KernelStage::Compute | KernelStage::Mesh | KernelStage::Task { .. })
    }

    /// Returns the stage as a set.
    pub fn as_set(&self) -> StageMask {
        match self {
            KernelStage::Compute => StageMask::COMPUTE,
            KernelStage::Vertex => StageMask::VERTEX,
            KernelStage::Fragment { .. } => StageMask::FRAGMENT,
            KernelStage::VertexAndFragment { .. } => StageMask::VERTEX.with(StageMask::FRAGMENT),
            KernelStage::Mesh => StageMask::MESH,
            KernelStage::Task { .. } => StageMask::TASK,
        }
    }

    /// Returns the features that its invocations need to run and to store.
    pub fn required_features(&self) -> &'static [Feature] {
        const BOTH: [Feature; 2] =
            [Feature::VertexPipelineStoresAndAtomics, Feature::FragmentStoresAndAtomics];
        match self {
            KernelStage::Compute => &[],
            KernelStage::Vertex => &BOTH[..1],
            KernelStage::Fragment { .. } => &BOTH[1..],
            KernelStage::VertexAndFragment { .. } => &BOTH,
            KernelStage::Mesh => &[Feature::MeshShader],
            KernelStage::Task { .. } => &[Feature::TaskShader, Feature::MeshShader],
        }
    }

    /// Returns the SPIR-V words of the vertex shader of a fragment stage.
    pub fn vertex_shader(&self) -> Option<&[u32]> {
        match self {
            KernelStage::Compute | KernelStage::Vertex | KernelStage::Mesh | KernelStage::Task { .. } => None,
            KernelStage::Fragment { vertex_shader: positions } => Some(positions),
            KernelStage::VertexAndFragment { vertex_shader: vertex } => Some(vertex),
        }
    }

    /// Returns the SPIR-V words of the mesh shader after a task shader.
    pub fn mesh_shader(&self) -> Option<&[u32]> {
        if let KernelStage::Task { mesh_shader: mesh } = self { Some(mesh) } else { None }
    }
}

/// The points of a draw and their extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drawing {
    /// The number of points, one per vertex, numbered from 0.
    pub points: u32,
    /// Width and height in pixels of the rasterized area; `(1, 1)` without rasterization.
    ///
    /// The viewport is [`Drawing::VIEWPORT_SIZE`] pixels wide and high from the same corner.
    pub extent: (u32, u32),
}

impl Drawing {
    /// The viewport size and the maximum extent in pixels; every device supports it.
    pub const VIEWPORT_SIZE: u32 = 4096;
}
