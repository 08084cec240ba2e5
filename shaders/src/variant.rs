//! Ways to tell the same test to a compiler: what a variant changes is what drivers are free to do, not what the test says.

use std::fmt;
use std::str::FromStr;

pub use crate::shape::{Filling, WorkgroupShape};

/// How a test is told. The default changes nothing: SPIR-V 1.5, the Vulkan memory model.
///
/// In test ids a variant stands behind `@`, its words joined by `.`, such as `MP+rel-acq@volatile.copy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant {
    /// The memory model that the module declares.
    pub model: MemoryModel,
    /// The version of SPIR-V.
    pub target: Target,
    /// Whether references that cannot overlap are declared so.
    pub references: References,
    /// Non-private accesses and atomics are volatile.
    pub volatile: bool,
    /// How pointers reach their accesses.
    pub pointers: Pointers,
    /// What loops ask of the compiler.
    pub loops: Loops,
    /// What `sc2` and `image` locations lie in.
    pub images: Images,
    /// Which storages lie in memory of their own.
    pub apart: Apart,
    /// How workgroup memory gets its initial values.
    pub workgroup_memory: WorkgroupMemory,
    /// What its invocations are of.
    pub stage: Stage,
    /// Which fragments overlap, where there are interlocked sections.
    pub interlock: Interlock,
    /// The size of its workgroups.
    pub shape: WorkgroupShape,
    /// How many workgroups play at once. Its kernels are the same whatever it says.
    pub filling: Filling,
    /// The size of its subgroups, where a device has several.
    pub subgroups: SubgroupSize,
}

/// What [`Variant::default`] is, where a constant is needed.
pub const DEFAULT: Variant = Variant {
    model: MemoryModel::Vulkan,
    target: Target::Vulkan12,
    references: References::Aliased,
    volatile: false,
    pointers: Pointers::Direct,
    loops: Loops::Free,
    images: Images::TwoDimensional,
    apart: Apart::Nothing,
    workgroup_memory: WorkgroupMemory::Stored,
    stage: Stage::Compute,
    interlock: Interlock::Pixel,
    shape: WorkgroupShape::Fitting,
    filling: Filling::Drawn,
    subgroups: SubgroupSize::Usual,
};

/// The memory model of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryModel {
    /// Vulkan's.
    #[default]
    Vulkan,
    /// `glsl450`: GLSL450 with coherent variables, whose Device scope means the queue family instance.
    Glsl450,
}

/// The version of SPIR-V that a module is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// SPIR-V 1.5: Vulkan 1.2 and later.
    #[default]
    Vulkan12,
    /// `vulkan11`: SPIR-V 1.3 with `SPV_KHR_vulkan_memory_model`.
    Vulkan11,
}

/// How references to memory are declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum References {
    /// Every reference may show the memory of every other.
    #[default]
    Aliased,
    /// `restrict`: no two references show the same memory. Only for tests without aliases.
    Restrict,
}

/// How a pointer reaches an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pointers {
    /// As it was made.
    #[default]
    Direct,
    /// `copy`: through `OpCopyObject`.
    Copy,
    /// `select`: through `OpSelect` under a condition that only the caller knows.
    Select,
    /// `phi`: through `OpPhi` behind a branch that only the caller knows.
    Phi,
}

/// What loops ask of the compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loops {
    /// Nothing.
    #[default]
    Free,
    /// `unrolled`.
    Unrolled,
    /// `looped`: not to be unrolled.
    Looped,
}

/// What image locations lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Images {
    /// A two-dimensional storage image.
    #[default]
    TwoDimensional,
    /// `image1d`: a one-dimensional storage image.
    OneDimensional,
    /// `texels`: a storage texel buffer, which shows the location buffer itself.
    TexelBuffer,
}

/// Which storages lie in a second location buffer, or in images beside it, which the caller puts into memory of another
/// kind than the rest. (Workgroup memory is in neither.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Apart {
    /// None.
    #[default]
    Nothing,
    /// `nonlocal-payload`: those that no instruction accesses atomically.
    Payload,
    /// `nonlocal-guard`: those that some instruction accesses atomically.
    Guard,
}

/// How workgroup memory gets its initial values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkgroupMemory {
    /// The kernel stores them, and its workgroup meets behind that.
    #[default]
    Stored,
    /// `zeroed`: the driver sets it to zero (an initializer of `OpConstantNull`,
    /// `VK_KHR_zero_initialize_workgroup_memory`), before anything of the kernel. The kernel stores zeroes for all rounds but the first.
    Zeroed,
}

impl WorkgroupMemory {
    /// The Vulkan feature that it needs.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            WorkgroupMemory::Stored => None,
            WorkgroupMemory::Zeroed => Some("shaderZeroInitializeWorkgroupMemory"),
        }
    }
}

/// The shader stage whose invocations play the threads ([`crate::carrier`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Compute.
    #[default]
    Compute,
    /// `vertex`.
    Vertex,
    /// `fragment`.
    Fragment,
    /// `fragment-helpers`: fragments, whose helpers do all that they do but claim a place. Nothing of that has an effect.
    FragmentHelpers,
    /// `vertex-fragment`: the first thread and every second one after it are vertices, the others fragments. Those of one queue that run
    /// at the same time are of one draw; with pipelines of their own, of draws with nothing between them.
    VertexFragment,
    /// `fragment-vertex`: the same with the stages exchanged.
    FragmentVertex,
    /// `mesh`: mesh shaders that give no primitive.
    Mesh,
    /// `task`: task shaders behind which no mesh shader runs.
    Task,
}

/// Which fragments an interlocked section keeps apart ("Fragment Shader Interlock"): as they are drawn here, with one sample for each
/// pixel and one pixel for each fragment, the same in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interlock {
    /// Those of one pixel (`PixelInterlockOrderedEXT`).
    #[default]
    Pixel,
    /// `sample-interlock`: those that cover one sample (`SampleInterlockOrderedEXT`).
    Sample,
    /// `shading-rate-interlock`: those that share a pixel, be they of several (`ShadingRateInterlockOrderedEXT`).
    ShadingRate,
}

impl Interlock {
    /// The Vulkan feature that it needs.
    pub fn feature(self) -> &'static str {
        match self {
            Interlock::Pixel => "fragmentShaderPixelInterlock",
            Interlock::Sample => "fragmentShaderSampleInterlock",
            Interlock::ShadingRate => "fragmentShaderShadingRateInterlock",
        }
    }
}

/// What a pipeline says of the size of subgroups (`subgroupSizeControl`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubgroupSize {
    /// Nothing, or where the threads of a test are placed by subgroups, the size that the device names first.
    #[default]
    Usual,
    /// `subgroup-smallest`: the smallest that the device has.
    Smallest,
    /// `subgroup-largest`: the largest.
    Largest,
    /// `subgroup-varying`: each may have another one. Only for tests whose threads are not placed by subgroups.
    Varying,
}

impl Stage {
    /// The Vulkan feature that lets its invocations store.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Stage::Compute => None,
            Stage::Vertex => Some("vertexPipelineStoresAndAtomics"),
            Stage::Fragment | Stage::FragmentHelpers => Some("fragmentStoresAndAtomics"),
            // Those of its kernels, each of which is of one stage.
            Stage::VertexFragment | Stage::FragmentVertex => None,
            // What is in a mesh or a task shader may store as in compute; the stage is what a device has or has not.
            Stage::Mesh => Some("meshShader"),
            Stage::Task => Some("taskShader"),
        }
    }

    /// Whether it is one of pipelines with mesh shaders, which have limits and an extension of their own.
    pub fn is_of_mesh(self) -> bool {
        matches!(self, Stage::Mesh | Stage::Task)
    }

    /// Whether its invocations are of workgroups, which share memory and wait for one another.
    pub fn has_workgroups(self) -> bool {
        self == Stage::Compute || self.is_of_mesh()
    }

    /// Whether threads of a test are in different stages.
    pub fn is_mixed(self) -> bool {
        matches!(self, Stage::VertexFragment | Stage::FragmentVertex)
    }

    /// The stage of the thread of a test with this number.
    #[must_use]
    pub fn of_thread(self, number: usize) -> Stage {
        match self {
            Stage::VertexFragment | Stage::FragmentVertex => {
                let vertex = number.is_multiple_of(2) == (self == Stage::VertexFragment);
                if vertex { Stage::Vertex } else { Stage::Fragment }
            }
            one => one,
        }
    }

    /// Whether its invocations are fragments.
    pub fn is_fragment(self) -> bool {
        matches!(self, Stage::Fragment | Stage::FragmentHelpers)
    }
}

/// A word that no variant has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no variant `{word}`; there are {}", words().map(|(word, _)| word).collect::<Vec<_>>().join(", "))]
pub struct UnknownVariant {
    /// The word.
    pub word: String,
}

/// Every word, with the variant that it makes of the default one; of the sizes and numbers of workgroups some.
pub fn words() -> impl Iterator<Item = (&'static str, Variant)> {
    let d = Variant::default();
    [
        ("glsl450", Variant { model: MemoryModel::Glsl450, ..d }),
        ("vulkan11", Variant { target: Target::Vulkan11, ..d }),
        ("restrict", Variant { references: References::Restrict, ..d }),
        ("volatile", Variant { volatile: true, ..d }),
        ("copy", Variant { pointers: Pointers::Copy, ..d }),
        ("select", Variant { pointers: Pointers::Select, ..d }),
        ("phi", Variant { pointers: Pointers::Phi, ..d }),
        ("unrolled", Variant { loops: Loops::Unrolled, ..d }),
        ("looped", Variant { loops: Loops::Looped, ..d }),
        ("image1d", Variant { images: Images::OneDimensional, ..d }),
        ("texels", Variant { images: Images::TexelBuffer, ..d }),
        ("nonlocal-payload", Variant { apart: Apart::Payload, ..d }),
        ("nonlocal-guard", Variant { apart: Apart::Guard, ..d }),
        ("zeroed", Variant { workgroup_memory: WorkgroupMemory::Zeroed, ..d }),
        ("vertex", Variant { stage: Stage::Vertex, ..d }),
        ("fragment", Variant { stage: Stage::Fragment, ..d }),
        ("subgroup-smallest", Variant { subgroups: SubgroupSize::Smallest, ..d }),
        ("subgroup-largest", Variant { subgroups: SubgroupSize::Largest, ..d }),
        ("subgroup-varying", Variant { subgroups: SubgroupSize::Varying, ..d }),
        ("fragment-helpers", Variant { stage: Stage::FragmentHelpers, ..d }),
        ("vertex-fragment", Variant { stage: Stage::VertexFragment, ..d }),
        ("fragment-vertex", Variant { stage: Stage::FragmentVertex, ..d }),
        ("mesh", Variant { stage: Stage::Mesh, ..d }),
        ("task", Variant { stage: Stage::Task, ..d }),
        ("sample-interlock", Variant { interlock: Interlock::Sample, ..d }),
        ("shading-rate-interlock", Variant { interlock: Interlock::ShadingRate, ..d }),
    ]
    .into_iter()
    .chain(WorkgroupShape::EXAMPLES.map(|(word, shape)| (word, Variant { shape, ..DEFAULT })))
    .chain(Filling::EXAMPLES.map(|(word, filling)| (word, Variant { filling, ..DEFAULT })))
}

impl Variant {
    /// The variant with what differs from the default in `other` taken over.
    #[must_use]
    pub fn with(self, other: Variant) -> Variant {
        fn choose<T: Default + PartialEq>(own: T, other: T) -> T {
            if other == T::default() { own } else { other }
        }
        Variant {
            model: choose(self.model, other.model),
            target: choose(self.target, other.target),
            references: choose(self.references, other.references),
            volatile: self.volatile || other.volatile,
            pointers: choose(self.pointers, other.pointers),
            loops: choose(self.loops, other.loops),
            images: choose(self.images, other.images),
            apart: choose(self.apart, other.apart),
            workgroup_memory: choose(self.workgroup_memory, other.workgroup_memory),
            stage: choose(self.stage, other.stage),
            interlock: choose(self.interlock, other.interlock),
            shape: choose(self.shape, other.shape),
            filling: choose(self.filling, other.filling),
            subgroups: choose(self.subgroups, other.subgroups),
        }
    }
}

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Variant, UnknownVariant> {
        let mut variant = Variant::default();
        for part in text.split('.').filter(|part| !part.is_empty()) {
            let shape = || part.parse().ok().map(|shape| Variant { shape, ..DEFAULT });
            let filling = || part.parse().ok().map(|filling| Variant { filling, ..DEFAULT });
            let found = words().find(|(word, _)| *word == part).map(|(_, one)| one);
            let found = found.or_else(shape).or_else(filling);
            variant = variant.with(found.ok_or_else(|| UnknownVariant { word: part.to_owned() })?);
        }
        Ok(variant)
    }
}

/// The words in the order of [`words`]; empty for the default.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Variant { shape: WorkgroupShape::Fitting, filling: Filling::Drawn, ..*self };
        let named = words().filter(|(_, one)| plain.with(*one) == plain).map(|(word, _)| word.to_owned());
        let numbers = [self.shape.to_string(), self.filling.to_string()];
        let numbers = numbers.into_iter().filter(|word| !word.is_empty());
        f.write_str(&named.chain(numbers).collect::<Vec<_>>().join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_variants_correspond() {
        assert_eq!(Variant::default().to_string(), "");
        for (word, variant) in words() {
            assert_ne!(variant, Variant::default(), "{word}");
            assert_eq!(word.parse(), Ok(variant));
            assert_eq!(variant.to_string(), word);
            for (other, second) in words() {
                let both = variant.with(second);
                assert_eq!(both.to_string().parse(), Ok(both), "{word}.{other}");
            }
        }
        let unknown = "volatile.fast".parse::<Variant>().unwrap_err();
        assert!(unknown.to_string().starts_with("no variant `fast`; there are glsl450, vulkan11"));
    }
}
