//! Shader stages, and the draws of graphics stages.

use crate::accesses::Accesses;

/// The stage of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
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
        positions: Vec<u32>,
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
    pub fn as_set(&self) -> Stages {
        match self {
            KernelStage::Compute => Stages::COMPUTE,
            KernelStage::Vertex => Stages::VERTEX,
            KernelStage::Fragment { .. } => Stages::FRAGMENT,
            KernelStage::VertexAndFragment { .. } => Stages::VERTEX.with(Stages::FRAGMENT),
            KernelStage::Mesh => Stages::MESH,
            KernelStage::Task { .. } => Stages::TASK,
        }
    }

    /// Returns the Vulkan features that its invocations need to run and to store.
    pub fn required_features(&self) -> &'static [&'static str] {
        const BOTH: [&str; 2] = ["vertexPipelineStoresAndAtomics", "fragmentStoresAndAtomics"];
        match self {
            KernelStage::Compute => &[],
            KernelStage::Vertex => &BOTH[..1],
            KernelStage::Fragment { .. } => &BOTH[1..],
            KernelStage::VertexAndFragment { .. } => &BOTH,
            KernelStage::Mesh => &["meshShader"],
            KernelStage::Task { .. } => &["taskShader", "meshShader"],
        }
    }

    /// Returns the SPIR-V words of the vertex shader of a fragment stage.
    pub fn vertex(&self) -> Option<&[u32]> {
        match self {
            KernelStage::Compute | KernelStage::Vertex | KernelStage::Mesh | KernelStage::Task { .. } => None,
            KernelStage::Fragment { positions } => Some(positions),
            KernelStage::VertexAndFragment { vertex_shader: vertex } => Some(vertex),
        }
    }

    /// Returns the SPIR-V words of the mesh shader after a task shader.
    pub fn mesh(&self) -> Option<&[u32]> {
        if let KernelStage::Task { mesh_shader: mesh } = self { Some(mesh) } else { None }
    }
}

/// A set of pipeline stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stages(u16);

impl Stages {
    /// No stage.
    pub const NONE: Stages = Stages(0);
    /// Compute shaders.
    pub const COMPUTE: Stages = Stages(1);
    /// Vertex shaders.
    pub const VERTEX: Stages = Stages(2);
    /// Fragment shaders.
    pub const FRAGMENT: Stages = Stages(4);
    /// Copies and fills.
    pub const TRANSFER: Stages = Stages(8);
    /// The host.
    pub const HOST: Stages = Stages(16);
    /// All commands; the host is not among them.
    pub const ALL: Stages = Stages(32);
    /// `TOP_OF_PIPE`.
    pub const TOP: Stages = Stages(64);
    /// `BOTTOM_OF_PIPE`.
    pub const BOTTOM: Stages = Stages(128);
    /// Mesh shaders.
    pub const MESH: Stages = Stages(256);
    /// Task shaders.
    pub const TASK: Stages = Stages(512);
    const COMMANDS: Stages = Stages::TRANSFER.with(Stages::SHADERS);
    const SHADERS: Stages = Stages(1 | 2 | 4 | 256 | 512);
    const GRAPHICS: Stages = Stages(2 | 4 | 256 | 512);

    /// Returns the stages that make these accesses outside of shaders.
    pub fn for_accesses(accesses: Accesses) -> Stages {
        let kinds = [
            (Accesses::TRANSFER_READ.with(Accesses::TRANSFER_WRITE), Stages::TRANSFER),
            (Accesses::HOST, Stages::HOST),
            (Accesses::MEMORY_READ.with(Accesses::MEMORY_WRITE), Stages::ALL),
        ];
        let named = kinds.into_iter().filter(|(kind, _)| accesses.intersects(*kind));
        named.fold(Stages::NONE, |all, (_, stage)| all.with(stage))
    }

    /// Returns true if these stages support all the accesses (VUID-VkMemoryBarrier2-srcAccessMask-03900 to
    /// 03917).
    pub const fn support_accesses(self, accesses: Accesses) -> bool {
        let of_shaders = Accesses::SHADER_READ.with(Accesses::SHADER_WRITE).with(Accesses::UNIFORM_READ);
        let of_transfers = Accesses::TRANSFER_READ.with(Accesses::TRANSFER_WRITE);
        (!accesses.intersects(of_shaders) || self.intersects(Stages::SHADERS.with(Stages::ALL)))
            && (!accesses.intersects(of_transfers) || self.intersects(Stages::TRANSFER.with(Stages::ALL)))
            && (!accesses.intersects(Accesses::HOST) || self.intersects(Stages::HOST))
    }

    /// Returns the stages of a first synchronization scope, including logically earlier ones.
    #[must_use]
    pub const fn as_source(self) -> Stages {
        let all = self.intersects(Stages::ALL.with(Stages::BOTTOM));
        let of_fragments = if self.intersects(Stages::FRAGMENT) { Stages::GRAPHICS } else { Stages::NONE };
        let of_mesh = if self.intersects(Stages::MESH) { Stages::TASK } else { Stages::NONE };
        self.named_stages().with(of_fragments).with(of_mesh).with(if all {
            Stages::COMMANDS
        } else {
            Stages::NONE
        })
    }

    /// Returns the stages of a second synchronization scope, including logically later ones.
    #[must_use]
    pub const fn as_target(self) -> Stages {
        let all = self.intersects(Stages::ALL.with(Stages::TOP));
        let before_fragments = Stages::VERTEX.with(Stages::MESH).with(Stages::TASK);
        let fragments = if self.intersects(before_fragments) { Stages::FRAGMENT } else { Stages::NONE };
        let mesh = if self.intersects(Stages::TASK) { Stages::MESH } else { Stages::NONE };
        self.named_stages().with(fragments).with(mesh).with(if all { Stages::COMMANDS } else { Stages::NONE })
    }

    /// Returns the stages of commands and of the host.
    const fn named_stages(self) -> Stages {
        Stages(self.0 & Stages::COMMANDS.with(Stages::HOST).0)
    }

    /// Returns the graphics shader stages in the set.
    #[must_use]
    pub const fn graphics_only(self) -> Stages {
        Stages(self.0 & Stages::GRAPHICS.0)
    }

    /// Returns the union.
    #[must_use]
    pub const fn with(self, other: Stages) -> Stages {
        Stages(self.0 | other.0)
    }

    /// Returns true if the sets have a member in common.
    pub const fn intersects(self, other: Stages) -> bool {
        self.0 & other.0 != 0
    }
}

/// The points of a draw and their extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drawing {
    /// The number of points, one per vertex, numbered from 0.
    pub points: u32,
    /// Width and height in pixels of the rasterized area; `(1, 1)` without rasterization.
    ///
    /// The viewport is [`Drawing::VIEWPORT`] pixels wide and high from the same corner.
    pub extent: (u32, u32),
}

impl Drawing {
    /// The viewport size and the maximum extent in pixels; every device supports it.
    pub const VIEWPORT: u32 = 4096;
}
