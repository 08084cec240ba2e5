//! Shader stages, and what is drawn in those of graphics.

/// What the invocations of a kernel are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Those of a dispatch.
    #[default]
    Compute,
    /// Vertices of a list of points, which are not rasterized.
    Vertex,
    /// Fragments of a list of points.
    Fragment {
        /// SPIR-V words of the vertex shader that puts the points to their places; its entry point is `main`, and it has no
        /// bindings and no push constants.
        positions: Vec<u32>,
    },
}

impl Stage {
    /// The stage as a set.
    pub fn set(&self) -> Stages {
        match self {
            Stage::Compute => Stages::COMPUTE,
            Stage::Vertex => Stages::VERTEX,
            Stage::Fragment { .. } => Stages::FRAGMENT,
        }
    }

    /// The Vulkan feature that lets its invocations store.
    pub fn feature(&self) -> Option<&'static str> {
        match self {
            Stage::Compute => None,
            Stage::Vertex => Some("vertexPipelineStoresAndAtomics"),
            Stage::Fragment { .. } => Some("fragmentStoresAndAtomics"),
        }
    }
}

/// A set of stages, as dependencies name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stages(u8);

impl Stages {
    /// No stage.
    pub const NONE: Stages = Stages(0);
    /// Compute shaders.
    pub const COMPUTE: Stages = Stages(1);
    /// Vertex shaders.
    pub const VERTEX: Stages = Stages(2);
    /// Fragment shaders.
    pub const FRAGMENT: Stages = Stages(4);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Stages) -> Stages {
        Stages(self.0 | other.0)
    }

    /// Whether the sets have a member in common.
    pub const fn intersects(self, other: Stages) -> bool {
        self.0 & other.0 != 0
    }
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drawing {
    /// Points, one a vertex: numbered from 0, each once.
    pub points: u32,
    /// Width and height in pixels of what fragments may lie in; `(1, 1)` where nothing is rasterized. The viewport is
    /// [`Drawing::VIEWPORT`] pixels wide and high from the same corner.
    pub extent: (u32, u32),
}

impl Drawing {
    /// Pixels of the viewport in each direction, and of an extent at most: every device has as many.
    pub const VIEWPORT: u32 = 4096;
}
