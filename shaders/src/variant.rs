//! Variants: different SPIR-V for the same test, which drivers may treat differently while its meaning stays
//! the same.
use vocabulary::Feature;

use std::fmt;
use std::str::FromStr;

pub use crate::shape::{WorkgroupCount, WorkgroupShape};
use crate::transform::KernelForm;

/// A variant of a test. The default changes nothing: SPIR-V 1.5, the Vulkan memory model.
///
/// In test ids a variant follows `@`, with its words joined by `.`, such as `MP+rel-acq@volatile.copy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant {
    /// The memory model that the module declares.
    pub model: MemoryModel,
    /// The version of SPIR-V.
    pub target: SpirvVersion,
    /// Whether references that cannot overlap are declared `Restrict`.
    pub reference_aliasing: ReferenceAliasing,
    /// Buffers and images that a kernel does not write are declared `NonWritable` in it.
    pub readonly: bool,
    /// Non-private accesses and atomics are volatile.
    pub volatile: bool,
    /// How a pointer is passed to its accesses.
    pub pointer_form: PointerForm,
    /// Loop control of the module.
    pub unrolling: LoopUnrolling,
    /// The images that contain `sc2` and `image` locations.
    pub image_form: ImageForm,
    /// The storages in separate memory.
    pub separate_storages: SeparateStorages,
    /// How workgroup memory gets its initial values.
    pub workgroup_memory: WorkgroupInitialization,
    pub stage: CarrierStage,
    /// Which fragments exclude each other in interlocked sections.
    pub interlock: InterlockMode,
    /// The size of its workgroups.
    pub shape: WorkgroupShape,
    /// The number of concurrent workgroups. The kernels do not depend on it.
    pub workgroup_count: WorkgroupCount,
    /// The size of its subgroups, if the device has several.
    pub subgroup_size: SubgroupSize,
    /// The transformations of its modules.
    pub form: Option<KernelForm>,
}

/// [`Variant::default`] as a constant.
pub const DEFAULT: Variant = Variant {
    model: MemoryModel::Vulkan,
    target: SpirvVersion::Vulkan12,
    reference_aliasing: ReferenceAliasing::Aliased,
    readonly: false,
    volatile: false,
    pointer_form: PointerForm::Direct,
    unrolling: LoopUnrolling::Unspecified,
    image_form: ImageForm::TwoDimensional,
    separate_storages: SeparateStorages::None,
    workgroup_memory: WorkgroupInitialization::Stored,
    stage: CarrierStage::Compute,
    interlock: InterlockMode::Pixel,
    shape: WorkgroupShape::Fitting,
    workgroup_count: WorkgroupCount::Random,
    subgroup_size: SubgroupSize::Unspecified,
    form: None,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryModel {
    /// Vulkan's.
    #[default]
    Vulkan,
    /// `glsl450`: GLSL450 with coherent variables; its Device scope means the queue family instance.
    Glsl450,
}

/// The version of SPIR-V that a module is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpirvVersion {
    /// SPIR-V 1.5: Vulkan 1.2 and later.
    #[default]
    Vulkan12,
    /// `vulkan11`: SPIR-V 1.3 with `SPV_KHR_vulkan_memory_model`.
    Vulkan11,
}

/// How references to memory are declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceAliasing {
    /// Every reference may alias every other.
    #[default]
    Aliased,
    /// `restrict`: no two references alias. Only for tests without aliases.
    Restrict,
}

/// How a pointer is passed to an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PointerForm {
    /// Directly.
    #[default]
    Direct,
    /// `copy`: through `OpCopyObject`.
    Copy,
    /// `select`: through `OpSelect`, with a condition that is unknown at compile time.
    Select,
    /// `phi`: through `OpPhi` after a branch, with a condition that is unknown at compile time.
    Phi,
}

/// Loop control of the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoopUnrolling {
    /// Nothing.
    #[default]
    Unspecified,
    /// `unrolled`.
    Unrolled,
    /// `looped`: do not unroll.
    NotUnrolled,
}

/// The images that contain image locations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageForm {
    /// A two-dimensional storage image.
    #[default]
    TwoDimensional,
    /// `image1d`: a one-dimensional storage image.
    OneDimensional,
    /// `texels`: a storage texel buffer, a view of the location buffer itself.
    TexelBuffer,
}

/// The storages in a second location buffer or in separate images, which the caller allocates in memory of
/// another type. Workgroup memory is in neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeparateStorages {
    #[default]
    None,
    /// `nonlocal-payload`: those that no instruction accesses atomically.
    Payload,
    /// `nonlocal-guard`: those that some instruction accesses atomically.
    Guard,
}

/// How workgroup memory gets its initial values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkgroupInitialization {
    /// The kernel stores them, followed by a barrier of its workgroup.
    #[default]
    Stored,
    /// `zeroed`: the driver zeroes it before the kernel starts (an initializer of `OpConstantNull`,
    /// `VK_KHR_zero_initialize_workgroup_memory`). The kernel stores zeroes for all rounds but the first.
    Zeroed,
}

impl WorkgroupInitialization {
    /// The Vulkan feature that it requires.
    pub fn feature(self) -> Option<Feature> {
        match self {
            WorkgroupInitialization::Stored => None,
            WorkgroupInitialization::Zeroed => Some(Feature::ShaderZeroInitializeWorkgroupMemory),
        }
    }
}

/// The shader stage whose invocations run the threads ([`crate::carrier`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CarrierStage {
    #[default]
    Compute,
    /// `vertex`.
    Vertex,
    /// `fragment`.
    Fragment,
    /// `fragment-helpers`: fragments whose helper invocations execute the same code without claiming a slot.
    /// No part of it has an effect.
    FragmentHelpers,
    /// `vertex-fragment`: threads 0, 2, … are vertices, the others fragments. Concurrent threads of one queue
    /// are in one draw; with separate pipelines, in draws with no dependency between them.
    VertexFragment,
    /// `fragment-vertex`: the same with the stages exchanged.
    FragmentVertex,
    /// `mesh`: mesh shaders that emit no primitive.
    Mesh,
    /// `task`: task shaders that launch no mesh shader.
    Task,
}

/// Which fragments an interlocked section orders ("Fragment Shader Interlock"). In these draws, with one
/// sample per pixel and one pixel per fragment, all three are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterlockMode {
    /// Fragments of one pixel (`PixelInterlockOrderedEXT`).
    #[default]
    Pixel,
    /// `sample-interlock`: fragments that cover the same sample (`SampleInterlockOrderedEXT`).
    Sample,
    /// `shading-rate-interlock`: fragments that share a pixel, even if they cover several
    /// (`ShadingRateInterlockOrderedEXT`).
    ShadingRate,
}

impl InterlockMode {
    /// Returns the Vulkan feature that it requires.
    pub fn feature(self) -> Feature {
        match self {
            InterlockMode::Pixel => Feature::FragmentShaderPixelInterlock,
            InterlockMode::Sample => Feature::FragmentShaderSampleInterlock,
            InterlockMode::ShadingRate => Feature::FragmentShaderShadingRateInterlock,
        }
    }
}

/// The subgroup size that a pipeline requests (`subgroupSizeControl`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubgroupSize {
    /// No request, or the device's reported size if the test places threads by subgroups.
    #[default]
    Unspecified,
    /// `subgroup-smallest`: the minimum of the device.
    Smallest,
    /// `subgroup-largest`: the maximum of the device.
    Largest,
    /// `subgroup-varying`: each subgroup may have a different size. Only for tests that do not place threads
    /// by subgroups.
    Varying,
}

impl CarrierStage {
    /// The Vulkan feature that allows stores in this stage.
    pub fn feature(self) -> Option<Feature> {
        match self {
            CarrierStage::Compute => None,
            CarrierStage::Vertex => Some(Feature::VertexPipelineStoresAndAtomics),
            CarrierStage::Fragment | CarrierStage::FragmentHelpers => Some(Feature::FragmentStoresAndAtomics),
            // Each of the kernels requires its own.
            CarrierStage::VertexFragment | CarrierStage::FragmentVertex => None,
            // Mesh and task shaders may store like compute shaders; only the stage itself is a feature.
            CarrierStage::Mesh => Some(Feature::MeshShader),
            CarrierStage::Task => Some(Feature::TaskShader),
        }
    }

    /// Returns true for the stages of mesh pipelines, which have separate limits and an extension.
    pub fn is_mesh_pipeline(self) -> bool {
        matches!(self, CarrierStage::Mesh | CarrierStage::Task)
    }

    /// Returns true if its invocations form workgroups, with shared memory and barriers.
    pub fn has_workgroups(self) -> bool {
        self == CarrierStage::Compute || self.is_mesh_pipeline()
    }

    /// Returns true if the threads of a test are in different stages.
    pub fn is_mixed(self) -> bool {
        matches!(self, CarrierStage::VertexFragment | CarrierStage::FragmentVertex)
    }

    #[must_use]
    pub fn for_thread(self, number: usize) -> CarrierStage {
        match self {
            CarrierStage::VertexFragment | CarrierStage::FragmentVertex => {
                let vertex = number.is_multiple_of(2) == (self == CarrierStage::VertexFragment);
                if vertex { CarrierStage::Vertex } else { CarrierStage::Fragment }
            }
            one => one,
        }
    }

    /// Returns true if its invocations are fragments.
    pub fn is_fragment(self) -> bool {
        matches!(self, CarrierStage::Fragment | CarrierStage::FragmentHelpers)
    }
}

/// Error for a word that is not a variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown variant `{word}`; expected one of {}", words().map(|(word, _)| word).collect::<Vec<_>>().join(", "))]
pub struct UnknownVariant {
    pub word: String,
}

/// Returns every word with its change to the default variant, except those of [forms](KernelForm); of sizes and
/// numbers of workgroups only examples.
pub fn words() -> impl Iterator<Item = (&'static str, Variant)> {
    let d = Variant::default();
    [
        ("glsl450", Variant { model: MemoryModel::Glsl450, ..d }),
        ("vulkan11", Variant { target: SpirvVersion::Vulkan11, ..d }),
        ("restrict", Variant { reference_aliasing: ReferenceAliasing::Restrict, ..d }),
        ("readonly", Variant { readonly: true, ..d }),
        ("volatile", Variant { volatile: true, ..d }),
        ("copy", Variant { pointer_form: PointerForm::Copy, ..d }),
        ("select", Variant { pointer_form: PointerForm::Select, ..d }),
        ("phi", Variant { pointer_form: PointerForm::Phi, ..d }),
        ("unrolled", Variant { unrolling: LoopUnrolling::Unrolled, ..d }),
        ("looped", Variant { unrolling: LoopUnrolling::NotUnrolled, ..d }),
        ("image1d", Variant { image_form: ImageForm::OneDimensional, ..d }),
        ("texels", Variant { image_form: ImageForm::TexelBuffer, ..d }),
        ("nonlocal-payload", Variant { separate_storages: SeparateStorages::Payload, ..d }),
        ("nonlocal-guard", Variant { separate_storages: SeparateStorages::Guard, ..d }),
        ("zeroed", Variant { workgroup_memory: WorkgroupInitialization::Zeroed, ..d }),
        ("vertex", Variant { stage: CarrierStage::Vertex, ..d }),
        ("fragment", Variant { stage: CarrierStage::Fragment, ..d }),
        ("subgroup-smallest", Variant { subgroup_size: SubgroupSize::Smallest, ..d }),
        ("subgroup-largest", Variant { subgroup_size: SubgroupSize::Largest, ..d }),
        ("subgroup-varying", Variant { subgroup_size: SubgroupSize::Varying, ..d }),
        ("fragment-helpers", Variant { stage: CarrierStage::FragmentHelpers, ..d }),
        ("vertex-fragment", Variant { stage: CarrierStage::VertexFragment, ..d }),
        ("fragment-vertex", Variant { stage: CarrierStage::FragmentVertex, ..d }),
        ("mesh", Variant { stage: CarrierStage::Mesh, ..d }),
        ("task", Variant { stage: CarrierStage::Task, ..d }),
        ("sample-interlock", Variant { interlock: InterlockMode::Sample, ..d }),
        ("shading-rate-interlock", Variant { interlock: InterlockMode::ShadingRate, ..d }),
    ]
    .into_iter()
    .chain(WorkgroupShape::EXAMPLES.map(|(word, shape)| (word, Variant { shape, ..DEFAULT })))
    .chain(
        WorkgroupCount::EXAMPLES
            .map(|(word, filling)| (word, Variant { workgroup_count: filling, ..DEFAULT })),
    )
}

impl Variant {
    /// Returns the variant with every setting of `other` that differs from the default.
    #[must_use]
    pub fn overridden_by(self, other: Variant) -> Variant {
        fn choose<T: Default + PartialEq>(own: T, other: T) -> T {
            if other == T::default() { own } else { other }
        }
        Variant {
            model: choose(self.model, other.model),
            target: choose(self.target, other.target),
            reference_aliasing: choose(self.reference_aliasing, other.reference_aliasing),
            readonly: self.readonly || other.readonly,
            volatile: self.volatile || other.volatile,
            pointer_form: choose(self.pointer_form, other.pointer_form),
            unrolling: choose(self.unrolling, other.unrolling),
            image_form: choose(self.image_form, other.image_form),
            separate_storages: choose(self.separate_storages, other.separate_storages),
            workgroup_memory: choose(self.workgroup_memory, other.workgroup_memory),
            stage: choose(self.stage, other.stage),
            interlock: choose(self.interlock, other.interlock),
            shape: choose(self.shape, other.shape),
            workgroup_count: choose(self.workgroup_count, other.workgroup_count),
            subgroup_size: choose(self.subgroup_size, other.subgroup_size),
            form: choose(self.form, other.form),
        }
    }
}

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Variant, UnknownVariant> {
        let mut variant = Variant::default();
        for part in text.split('.').filter(|part| !part.is_empty()) {
            let shape = || part.parse().ok().map(|shape| Variant { shape, ..DEFAULT });
            let filling = || part.parse().ok().map(|filling| Variant { workgroup_count: filling, ..DEFAULT });
            let found = words().find(|(word, _)| *word == part).map(|(_, one)| one);
            let form = || part.parse().ok().map(|form| Variant { form: Some(form), ..DEFAULT });
            let found = found.or_else(shape).or_else(filling).or_else(form);
            variant = variant.overridden_by(found.ok_or_else(|| UnknownVariant { word: part.to_owned() })?);
        }
        Ok(variant)
    }
}

/// Writes the words in the order of [`words`]; nothing for the default.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Variant {
            shape: WorkgroupShape::Fitting,
            workgroup_count: WorkgroupCount::Random,
            form: None,
            ..*self
        };
        let named =
            words().filter(|(_, one)| plain.overridden_by(*one) == plain).map(|(word, _)| word.to_owned());
        let form = self.form.map(|form| form.to_string()).unwrap_or_default();
        let numbers = [self.shape.to_string(), self.workgroup_count.to_string(), form];
        let numbers = numbers.into_iter().filter(|word| !word.is_empty());
        f.write_str(&named.chain(numbers).collect::<Vec<_>>().join("."))
    }
}
