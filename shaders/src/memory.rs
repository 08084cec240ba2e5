//! Access paths: the references of a test, with their variables, pointers and texels.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    AccessKind, ArithmeticOperation, InstructionKind, LocationId, MemoryPlace, Reference, RmwOperation,
    ScalarType, Scope, StorageClass, Test, Value,
};
use rspirv::spirv::{Capability, Dim, ImageFormat, StorageClass as SpirvClass, Word};
use vocabulary::Feature;

use crate::kernel::SPLIT_BARRIER_EXTENSION;
use crate::module::ModuleBuilder;
use crate::rules::Rule;
use crate::subgroup;
use crate::variant::{ImageForm, PointerForm, Variant};

/// The type of a value in memory: an integer by its width, or a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ElementType {
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl ElementType {
    pub fn from_scalar(scalar: ScalarType) -> ElementType {
        match scalar {
            ScalarType::U8 | ScalarType::I8 => ElementType::U8,
            ScalarType::U16 | ScalarType::I16 => ElementType::U16,
            ScalarType::U32 | ScalarType::I32 => ElementType::U32,
            ScalarType::U64 | ScalarType::I64 => ElementType::U64,
            ScalarType::F32 => ElementType::F32,
            ScalarType::F64 => ElementType::F64,
        }
    }

    pub fn bytes(self) -> u32 {
        match self {
            ElementType::U8 => 1,
            ElementType::U16 => 2,
            ElementType::U32 | ElementType::F32 => 4,
            ElementType::U64 | ElementType::F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, ElementType::F32 | ElementType::F64)
    }

    /// Returns the SPIR-V type.
    pub fn spirv_type(self, module: &mut ModuleBuilder) -> Word {
        if self.is_float() { module.type_float(8 * self.bytes()) } else { module.type_int(8 * self.bytes()) }
    }

    /// Returns the bits of a test's number in memory; a floating-point location contains the number itself.
    pub fn value_bits(self, value: Value) -> u64 {
        match self {
            ElementType::F32 => (value.0 as u32 as i32 as f32).to_bits().into(),
            ElementType::F64 => (value.0 as i64 as f64).to_bits(),
            ElementType::U8 => value.0 & 0xff,
            ElementType::U16 => value.0 & 0xffff,
            ElementType::U32 => value.0 & 0xffff_ffff,
            ElementType::U64 => value.0,
        }
    }
}

/// A path to memory: a reference, with the type and offset of the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReferencePath {
    pub location: LocationId,
    pub element: ElementType,
    /// The offset in bytes.
    pub offset: u32,
    /// Elements of one access: 1, or those of a vector.
    pub components: u32,
}

impl ReferencePath {
    /// Returns the bytes of the access.
    pub fn bytes(self) -> u32 {
        self.element.bytes() * self.components
    }

    pub fn is_vector(self) -> bool {
        self.components > 1
    }

    /// Returns the SPIR-V type of the access.
    pub fn spirv_type(self, module: &mut ModuleBuilder) -> Word {
        let element = self.element.spirv_type(module);
        if self.is_vector() { module.type_vector(element, self.components) } else { element }
    }

    /// Returns the alignment of an address, by the offset of a vector in units of `unit` bytes.
    pub fn alignment(self, unit: u32) -> u32 {
        if !self.is_vector() {
            return self.element.bytes();
        }
        let place = if self.offset == 0 { unit } else { 1 << self.offset.trailing_zeros() };
        place.min(unit).min(self.bytes().next_power_of_two())
    }
}

/// The kind of memory of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceMemory {
    /// The location buffer through a descriptor.
    Buffer,
    /// The location buffer by its address.
    Address,
    Workgroup,
    Image,
}

impl ReferenceMemory {
    pub fn for_reference(test: &Test, location: LocationId, class: StorageClass) -> ReferenceMemory {
        match (class, test.location(location).reference) {
            (_, Some(Reference::Address)) => ReferenceMemory::Address,
            (StorageClass::Workgroup, _) => ReferenceMemory::Workgroup,
            (StorageClass::Image, _) => ReferenceMemory::Image,
            (StorageClass::Buffer | StorageClass::Output, _) => ReferenceMemory::Buffer,
        }
    }
}

/// The target of a path in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessTarget {
    /// A pointer; accesses by address contain their alignment.
    Memory { pointer: Word, alignment: Option<u32> },
    /// A texel of an image.
    Texel { variable: Word, image: Word, coordinates: Word },
}

/// The paths, scopes and features that the instructions of a test use.
#[derive(Default)]
pub(crate) struct TestUsage {
    /// Sorted, without duplicates.
    pub paths: Vec<(ReferencePath, ReferenceMemory)>,
    pub scopes: Vec<Scope>,
    /// Workgroup blocks have an explicit layout, because several paths access the same workgroup memory.
    pub has_explicit_workgroup: bool,
    pub storage_words: u32,
    /// The entry point declares maximal reconvergence.
    pub reconverges: bool,
    capabilities: Vec<Capability>,
    extensions: Vec<&'static str>,
    features: Vec<Feature>,
}

impl TestUsage {
    /// Analyses a test that [`rules::check`](crate::rules::check) accepts.
    pub fn analyze(test: &Test, variant: Variant) -> Result<TestUsage, Rule> {
        let mut uses = TestUsage {
            storage_words: 1,
            reconverges: test.metadata.maximal_reconvergence && test.has_tangles(),
            ..TestUsage::default()
        };
        for location in &test.locations {
            uses.storage_words = uses.storage_words.max(location.bytes().div_ceil(4).next_power_of_two());
        }
        for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
            uses.add_instruction(test, &instruction.kind)?;
        }
        if uses.reconverges {
            uses.features.push(Feature::ShaderMaximalReconvergence);
            uses.extensions.push("SPV_KHR_maximal_reconvergence");
        }
        uses.paths.sort_by_key(|(path, _)| *path);
        uses.paths.dedup();
        uses.has_explicit_workgroup = uses.needs_explicit_workgroup(test);
        for (path, kind) in uses.paths.clone() {
            uses.add_element(path.element, kind)?;
        }
        for thread in (0..test.threads.len()).map(|index| litmus::ThreadId(index as u16)) {
            let registers = 0..test.thread(thread).registers.len() as u16;
            if registers.map(litmus::RegisterId).any(|r| test.register_type(thread, r).bits() == 64) {
                uses.require_feature(Capability::Int64, Feature::ShaderInt64);
            }
        }
        let kinds = |wanted: ReferenceMemory| uses.paths.iter().any(|(_, kind)| *kind == wanted);
        let (image, address, workgroup) = (
            kinds(ReferenceMemory::Image),
            kinds(ReferenceMemory::Address),
            kinds(ReferenceMemory::Workgroup),
        );
        if image {
            let texels = || uses.paths.iter().filter(|(_, kind)| *kind == ReferenceMemory::Image);
            let float = |(path, _): &(ReferencePath, ReferenceMemory)| path.element.is_float();
            let mixed = texels().any(float) && !texels().all(float);
            let final_texels = test.observables().into_iter().any(|observable| match observable {
                litmus::Observable::Location(location, _) => {
                    texels().any(|(path, _)| test.storage_of(path.location) == test.storage_of(location))
                }
                litmus::Observable::Register(..) => false,
            });
            let has_image_memory = variant.image_form != ImageForm::TexelBuffer;
            Rule::MixedImageTypes.when(has_image_memory && mixed && final_texels)?;
            match variant.image_form {
                ImageForm::TwoDimensional => {}
                ImageForm::OneDimensional => uses.capabilities.push(Capability::Image1D),
                ImageForm::TexelBuffer => uses.capabilities.push(Capability::ImageBuffer),
            }
        }
        if address {
            uses.require_feature(Capability::PhysicalStorageBufferAddresses, Feature::BufferDeviceAddress);
            uses.extensions.push("SPV_KHR_physical_storage_buffer");
        }
        Rule::WorkgroupLayoutVersion
            .when(uses.has_explicit_workgroup && variant.target == crate::variant::SpirvVersion::Vulkan11)?;
        if uses.has_explicit_workgroup {
            uses.require_feature(
                Capability::WorkgroupMemoryExplicitLayoutKHR,
                Feature::WorkgroupMemoryExplicitLayout,
            );
            uses.extensions.push("SPV_KHR_workgroup_memory_explicit_layout");
        }
        if let (true, Some(feature)) = (workgroup, variant.workgroup_memory.feature()) {
            let is_zero_initialized = |(path, kind): &(ReferencePath, ReferenceMemory)| {
                let components = 0..path.components as u8;
                *kind != ReferenceMemory::Workgroup || { components }
                    .all(|component| test.initial_value(path.location, component).0 == 0)
            };
            Rule::InitializedWorkgroupMemory
                .when(uses.has_explicit_workgroup || !uses.paths.iter().all(is_zero_initialized))?;
            uses.features.push(feature);
        }
        if matches!(variant.pointer_form, PointerForm::Select | PointerForm::Phi) {
            if workgroup {
                uses.require_feature(Capability::VariablePointers, Feature::VariablePointers);
            }
            uses.require_feature(
                Capability::VariablePointersStorageBuffer,
                Feature::VariablePointersStorageBuffer,
            );
        }
        Ok(uses)
    }

    fn add_instruction(&mut self, test: &Test, kind: &InstructionKind) -> Result<(), Rule> {
        if let Some(access) = kind.access() {
            let (path, kind) = self.add_path(test, &access.place, access.components().into())?;
            if access.strength.is_atomic() {
                let operation = match &access.kind {
                    AccessKind::Rmw { operation, .. } => Some(operation),
                    AccessKind::Load(_) | AccessKind::Store(_) | AccessKind::Await { .. } => None,
                };
                self.scopes.extend(access.strength.scope());
                self.add_atomic(path.element, kind, operation)?;
                return Ok(());
            }
        }
        if let InstructionKind::SplitBarrier(_) = kind {
            self.require_feature(Capability::SplitBarrierINTEL, Feature::ShaderSplitBarrier);
            self.extensions.push(SPLIT_BARRIER_EXTENSION);
        }
        if let InstructionKind::Subgroup(operation) = kind {
            let (capability, feature, extension) = subgroup::requirements(operation.kind);
            self.require_feature(capability, feature);
            self.extensions.extend(extension);
            self.scopes.push(Scope::Subgroup);
        }
        self.scopes.extend(kind.execution_scope());
        self.scopes.extend(kind.memory_scope());
        Ok(())
    }

    fn add_path(
        &mut self,
        test: &Test,
        place: &MemoryPlace,
        components: u32,
    ) -> Result<(ReferencePath, ReferenceMemory), Rule> {
        let MemoryPlace { location, offset, class, .. } = *place;
        let element = ElementType::from_scalar(place.scalar_type(test));
        let kind = ReferenceMemory::for_reference(test, location, class);
        Rule::VectorImage.when(
            kind == ReferenceMemory::Image
                && (components > 1 || test.location(test.storage_of(location)).is_vector()),
        )?;
        let path = ReferencePath { location, element, offset, components };
        let end = offset.saturating_add(path.bytes());
        Rule::Offset.when(
            !offset.is_multiple_of(element.bytes())
                || end > 16
                || (kind == ReferenceMemory::Image && offset > 0),
        )?;
        self.storage_words = self.storage_words.max(end.div_ceil(4).next_power_of_two());
        self.paths.push((path, kind));
        Ok((path, kind))
    }

    /// Returns true if several paths access a workgroup storage, or one with another type than its own.
    fn needs_explicit_workgroup(&self, test: &Test) -> bool {
        let workgroup: Vec<ReferencePath> = self
            .paths
            .iter()
            .filter(|(_, kind)| *kind == ReferenceMemory::Workgroup)
            .map(|(path, _)| *path)
            .collect();
        workgroup.iter().any(|path| {
            let storage = test.storage_of(path.location);
            path.offset != 0
                || path.element != ElementType::from_scalar(test.location(storage).scalar_type())
                || path.components != u32::from(test.location(storage).components)
                || workgroup.iter().any(|other| {
                    other.location != path.location && test.storage_of(other.location) == storage
                })
        })
    }

    fn require_feature(&mut self, capability: Capability, feature: Feature) {
        self.capabilities.push(capability);
        self.features.push(feature);
    }

    /// Adds the requirements of plain accesses to an element.
    fn add_element(&mut self, element: ElementType, kind: ReferenceMemory) -> Result<(), Rule> {
        let explicit = kind == ReferenceMemory::Workgroup && self.has_explicit_workgroup;
        let buffer = matches!(kind, ReferenceMemory::Buffer | ReferenceMemory::Address);
        match element {
            _ if kind == ReferenceMemory::Image
                && !matches!(element, ElementType::U32 | ElementType::F32) =>
            {
                return Err(Rule::ImageType);
            }
            ElementType::U8 => {
                self.require_feature(Capability::Int8, Feature::ShaderInt8);
                if buffer {
                    self.require_feature(
                        Capability::StorageBuffer8BitAccess,
                        Feature::StorageBuffer8BitAccess,
                    );
                    self.extensions.push("SPV_KHR_8bit_storage");
                } else if explicit {
                    self.require_feature(
                        Capability::WorkgroupMemoryExplicitLayout8BitAccessKHR,
                        Feature::WorkgroupMemoryExplicitLayout8BitAccess,
                    );
                }
            }
            ElementType::U16 => {
                self.require_feature(Capability::Int16, Feature::ShaderInt16);
                if buffer {
                    self.require_feature(
                        Capability::StorageBuffer16BitAccess,
                        Feature::StorageBuffer16BitAccess,
                    );
                } else if explicit {
                    self.require_feature(
                        Capability::WorkgroupMemoryExplicitLayout16BitAccessKHR,
                        Feature::WorkgroupMemoryExplicitLayout16BitAccess,
                    );
                }
            }
            ElementType::U64 => self.require_feature(Capability::Int64, Feature::ShaderInt64),
            ElementType::F64 => {
                self.require_feature(Capability::Int64, Feature::ShaderInt64);
                self.require_feature(Capability::Float64, Feature::ShaderFloat64);
            }
            ElementType::U32 | ElementType::F32 => {}
        }
        Ok(())
    }

    /// Adds the requirements of an atomic.
    fn add_atomic(
        &mut self,
        element: ElementType,
        kind: ReferenceMemory,
        operation: Option<&RmwOperation>,
    ) -> Result<(), Rule> {
        let by_kind = |buffer, shared, image| match kind {
            ReferenceMemory::Buffer | ReferenceMemory::Address => buffer,
            ReferenceMemory::Workgroup => shared,
            ReferenceMemory::Image => image,
        };
        match element {
            ElementType::U8 | ElementType::U16 => return Err(Rule::NarrowAtomic),
            ElementType::U32 => return Ok(()),
            ElementType::U64 => {
                let feature = by_kind(
                    Feature::ShaderBufferInt64Atomics,
                    Feature::ShaderSharedInt64Atomics,
                    Feature::ShaderImageInt64Atomics,
                );
                self.require_feature(Capability::Int64Atomics, feature);
                return Ok(());
            }
            ElementType::F32 => self.features.push(by_kind(
                Feature::ShaderBufferFloat32Atomics,
                Feature::ShaderSharedFloat32Atomics,
                Feature::ShaderImageFloat32Atomics,
            )),
            ElementType::F64 => self.features.push(by_kind(
                Feature::ShaderBufferFloat64Atomics,
                Feature::ShaderSharedFloat64Atomics,
                Feature::ShaderBufferFloat64Atomics,
            )),
        }
        let single = element == ElementType::F32;
        match operation {
            None | Some(RmwOperation::Exchange(_)) => {}
            Some(RmwOperation::Fetch(ArithmeticOperation::Add, _)) => {
                let feature = if single {
                    by_kind(
                        Feature::ShaderBufferFloat32AtomicAdd,
                        Feature::ShaderSharedFloat32AtomicAdd,
                        Feature::ShaderImageFloat32AtomicAdd,
                    )
                } else {
                    by_kind(
                        Feature::ShaderBufferFloat64AtomicAdd,
                        Feature::ShaderSharedFloat64AtomicAdd,
                        Feature::ShaderBufferFloat64AtomicAdd,
                    )
                };
                let capability =
                    if single { Capability::AtomicFloat32AddEXT } else { Capability::AtomicFloat64AddEXT };
                self.require_feature(capability, feature);
                self.extensions.push("SPV_EXT_shader_atomic_float_add");
            }
            Some(RmwOperation::Fetch(ArithmeticOperation::Minimum | ArithmeticOperation::Maximum, _)) => {
                let feature = if single {
                    by_kind(
                        Feature::ShaderBufferFloat32AtomicMinMax,
                        Feature::ShaderSharedFloat32AtomicMinMax,
                        Feature::ShaderImageFloat32AtomicMinMax,
                    )
                } else {
                    by_kind(
                        Feature::ShaderBufferFloat64AtomicMinMax,
                        Feature::ShaderSharedFloat64AtomicMinMax,
                        Feature::ShaderBufferFloat64AtomicMinMax,
                    )
                };
                let capability = if single {
                    Capability::AtomicFloat32MinMaxEXT
                } else {
                    Capability::AtomicFloat64MinMaxEXT
                };
                self.require_feature(capability, feature);
                self.extensions.push("SPV_EXT_shader_atomic_float_min_max");
            }
            Some(_) => return Err(Rule::FloatAtomic),
        }
        Ok(())
    }

    /// Returns the additional capabilities, without duplicates.
    pub fn capabilities(&self) -> Vec<Capability> {
        let mut capabilities = self.capabilities.clone();
        capabilities.sort_unstable();
        capabilities.dedup();
        capabilities
    }

    /// Returns the extensions of these capabilities, without duplicates; with `later`, without those in the
    /// core of SPIR-V 1.5.
    pub fn extensions(&self, later: bool) -> Vec<&'static str> {
        let in_core = ["SPV_KHR_8bit_storage", "SPV_KHR_physical_storage_buffer"];
        let mut extensions = self.extensions.clone();
        extensions.sort_unstable();
        extensions.dedup();
        extensions.retain(|extension| !(later && in_core.contains(extension)));
        extensions
    }

    /// Returns the required features, without duplicates.
    pub fn features(&self) -> Vec<Feature> {
        let mut features = self.features.clone();
        features.sort_unstable();
        features.dedup();
        features
    }

    pub fn has_memory(&self, wanted: ReferenceMemory) -> bool {
        self.paths.iter().any(|(_, kind)| *kind == wanted)
    }
}

pub(crate) fn image_type(module: &mut ModuleBuilder, element: ElementType, images: ImageForm) -> Word {
    let format = if element == ElementType::F32 { ImageFormat::R32f } else { ImageFormat::R32ui };
    let dimension = match images {
        ImageForm::TwoDimensional => Dim::Dim2D,
        ImageForm::OneDimensional => Dim::Dim1D,
        ImageForm::TexelBuffer => Dim::DimBuffer,
    };
    let texel = element.spirv_type(module);
    module.type_image(texel, dimension, format)
}

pub(crate) fn pointer_storage_class(kind: ReferenceMemory) -> SpirvClass {
    match kind {
        ReferenceMemory::Buffer => SpirvClass::StorageBuffer,
        ReferenceMemory::Address => SpirvClass::PhysicalStorageBuffer,
        ReferenceMemory::Workgroup => SpirvClass::Workgroup,
        ReferenceMemory::Image => SpirvClass::UniformConstant,
    }
}
