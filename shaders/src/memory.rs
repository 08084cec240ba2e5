//! Access paths: the references of a test, with their variables, pointers and texels.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    AccessKind, ArithmeticOperation, InstructionKind, LocationId, MemoryPlace, Reference, RmwOperation,
    ScalarType, Scope, StorageClass, Test, Value,
};
use rspirv::spirv::{Capability, Dim, ImageFormat, StorageClass as SpirvClass, Word};
use vocabulary::Feature;

use crate::kernel::SPLIT_BARRIER_EXTENSION;
use crate::module::Module;
use crate::rules::Rule;
use crate::subgroup;
use crate::variant::{Images, Pointers, Variant};

/// The type of a value in memory: an integer by its width, or a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Element {
    pub fn of(scalar: ScalarType) -> Element {
        match scalar {
            ScalarType::U8 | ScalarType::I8 => Element::U8,
            ScalarType::U16 | ScalarType::I16 => Element::U16,
            ScalarType::U32 | ScalarType::I32 => Element::U32,
            ScalarType::U64 | ScalarType::I64 => Element::U64,
            ScalarType::F32 => Element::F32,
            ScalarType::F64 => Element::F64,
        }
    }

    pub fn bytes(self) -> u32 {
        match self {
            Element::U8 => 1,
            Element::U16 => 2,
            Element::U32 | Element::F32 => 4,
            Element::U64 | Element::F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Element::F32 | Element::F64)
    }

    /// Returns the SPIR-V type.
    pub fn ty(self, module: &mut Module) -> Word {
        if self.is_float() { module.float(8 * self.bytes()) } else { module.integer(8 * self.bytes()) }
    }

    /// Returns the bits of a test's number in memory; a floating-point location contains the number itself.
    pub fn bits(self, value: Value) -> u64 {
        match self {
            Element::F32 => (value.0 as u32 as i32 as f32).to_bits().into(),
            Element::F64 => (value.0 as i64 as f64).to_bits(),
            Element::U8 => value.0 & 0xff,
            Element::U16 => value.0 & 0xffff,
            Element::U32 => value.0 & 0xffff_ffff,
            Element::U64 => value.0,
        }
    }
}

/// A path to memory: a reference, with the type and offset of the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReferencePath {
    pub location: LocationId,
    pub element: Element,
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
    pub fn ty(self, module: &mut Module) -> Word {
        let element = self.element.ty(module);
        if self.is_vector() { module.vector(element, self.components) } else { element }
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
    pub fn of(test: &Test, location: LocationId, class: StorageClass) -> ReferenceMemory {
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
    /// A texel of an image variable.
    Texel { variable: Word, image: Word, coordinates: Word },
}

/// The paths, scopes and features that the instructions of a test use.
pub(crate) struct Uses {
    /// Sorted, without duplicates.
    pub paths: Vec<(ReferencePath, ReferenceMemory)>,
    pub scopes: Vec<Scope>,
    /// Workgroup blocks have an explicit layout, because several paths access the same workgroup memory.
    pub explicit_workgroup: bool,
    /// Words of a storage.
    pub storage_words: u32,
    /// The entry point declares maximal reconvergence.
    pub reconverges: bool,
    capabilities: Vec<Capability>,
    extensions: Vec<&'static str>,
    features: Vec<Feature>,
}

impl Uses {
    /// Analyses a test that [`rules::check`](crate::rules::check) accepts.
    pub fn of(test: &Test, variant: Variant) -> Result<Uses, Rule> {
        let mut uses = Uses {
            paths: Vec::new(),
            scopes: Vec::new(),
            explicit_workgroup: false,
            storage_words: 1,
            reconverges: test.metadata.maximal_reconvergence && test.has_tangles(),
            capabilities: Vec::new(),
            extensions: Vec::new(),
            features: Vec::new(),
        };
        for location in &test.locations {
            uses.storage_words = uses.storage_words.max(location.bytes().div_ceil(4).next_power_of_two());
        }
        for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
            uses.instruction(test, &instruction.kind)?;
        }
        if uses.reconverges {
            uses.features.push(Feature::ShaderMaximalReconvergence);
            uses.extensions.push("SPV_KHR_maximal_reconvergence");
        }
        uses.paths.sort_by_key(|(path, _)| *path);
        uses.paths.dedup();
        uses.explicit_workgroup = uses.workgroup_is_explicit(test);
        for (path, kind) in uses.paths.clone() {
            uses.element(path.element, kind)?;
        }
        for thread in (0..test.threads.len()).map(|index| litmus::ThreadId(index as u16)) {
            let registers = 0..test.thread(thread).registers.len() as u16;
            if registers.map(litmus::RegisterId).any(|r| test.register_type(thread, r).bits() == 64) {
                uses.need(Capability::Int64, Feature::ShaderInt64);
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
            let own_memory = variant.images != Images::TexelBuffer;
            if own_memory && mixed && final_texels {
                return Err(Rule::ImageBeside);
            }
            match variant.images {
                Images::TwoDimensional => {}
                Images::OneDimensional => uses.capabilities.push(Capability::Image1D),
                Images::TexelBuffer => uses.capabilities.push(Capability::ImageBuffer),
            }
        }
        if address {
            uses.need(Capability::PhysicalStorageBufferAddresses, Feature::BufferDeviceAddress);
            uses.extensions.push("SPV_KHR_physical_storage_buffer");
        }
        if uses.explicit_workgroup && variant.target == crate::variant::SpirvVersion::Vulkan11 {
            return Err(Rule::OldWorkgroupLayout);
        }
        if uses.explicit_workgroup {
            uses.need(Capability::WorkgroupMemoryExplicitLayoutKHR, Feature::WorkgroupMemoryExplicitLayout);
            uses.extensions.push("SPV_KHR_workgroup_memory_explicit_layout");
        }
        if let (true, Some(feature)) = (workgroup, variant.workgroup_memory.feature()) {
            let begins_as_zero = |(path, kind): &(ReferencePath, ReferenceMemory)| {
                let components = 0..path.components as u8;
                *kind != ReferenceMemory::Workgroup || { components }
                    .all(|component| test.initial_value(path.location, component).0 == 0)
            };
            if uses.explicit_workgroup || !uses.paths.iter().all(begins_as_zero) {
                return Err(Rule::InitializedWorkgroupMemory);
            }
            uses.features.push(feature);
        }
        if matches!(variant.pointers, Pointers::Select | Pointers::Phi) {
            if workgroup {
                uses.need(Capability::VariablePointers, Feature::VariablePointers);
            }
            uses.need(Capability::VariablePointersStorageBuffer, Feature::VariablePointersStorageBuffer);
        }
        Ok(uses)
    }

    fn instruction(&mut self, test: &Test, kind: &InstructionKind) -> Result<(), Rule> {
        if let Some(access) = kind.access() {
            let (path, kind) = self.path(test, &access.place, access.components().into())?;
            if access.strength.is_atomic() {
                let operation = match &access.kind {
                    AccessKind::Rmw { operation, .. } => Some(operation),
                    AccessKind::Load(_) | AccessKind::Store(_) | AccessKind::Await { .. } => None,
                };
                self.scopes.extend(access.strength.scope());
                self.atomic(path.element, kind, operation)?;
                return Ok(());
            }
        }
        if let InstructionKind::SplitBarrier(_) = kind {
            self.need(Capability::SplitBarrierINTEL, Feature::ShaderSplitBarrier);
            self.extensions.push(SPLIT_BARRIER_EXTENSION);
        }
        if let InstructionKind::Subgroup(operation) = kind {
            let (capability, feature, extension) = subgroup::needs(operation.kind);
            self.need(capability, feature);
            self.extensions.extend(extension);
            self.scopes.push(Scope::Subgroup);
        }
        self.scopes.extend(kind.execution_scope());
        self.scopes.extend(kind.memory_scope());
        Ok(())
    }

    fn path(
        &mut self,
        test: &Test,
        place: &MemoryPlace,
        components: u32,
    ) -> Result<(ReferencePath, ReferenceMemory), Rule> {
        let MemoryPlace { location, offset, class, .. } = *place;
        let element = Element::of(place.scalar_type(test));
        let kind = ReferenceMemory::of(test, location, class);
        if kind == ReferenceMemory::Image
            && (components > 1 || test.location(test.storage_of(location)).is_vector())
        {
            return Err(Rule::VectorImage);
        }
        let path = ReferencePath { location, element, offset, components };
        let end = offset.saturating_add(path.bytes());
        if !offset.is_multiple_of(element.bytes())
            || end > 16
            || (kind == ReferenceMemory::Image && offset > 0)
        {
            return Err(Rule::Offset);
        }
        self.storage_words = self.storage_words.max(end.div_ceil(4).next_power_of_two());
        self.paths.push((path, kind));
        Ok((path, kind))
    }

    /// Returns true if several paths access a workgroup storage, or one with another type than its own.
    fn workgroup_is_explicit(&self, test: &Test) -> bool {
        let workgroup: Vec<ReferencePath> = self
            .paths
            .iter()
            .filter(|(_, kind)| *kind == ReferenceMemory::Workgroup)
            .map(|(path, _)| *path)
            .collect();
        workgroup.iter().any(|path| {
            let storage = test.storage_of(path.location);
            path.offset != 0
                || path.element != Element::of(test.location(storage).scalar_type())
                || path.components != u32::from(test.location(storage).components)
                || workgroup.iter().any(|other| {
                    other.location != path.location && test.storage_of(other.location) == storage
                })
        })
    }

    fn need(&mut self, capability: Capability, feature: Feature) {
        self.capabilities.push(capability);
        self.features.push(feature);
    }

    /// Adds the requirements of plain accesses to an element.
    fn element(&mut self, element: Element, kind: ReferenceMemory) -> Result<(), Rule> {
        let explicit = kind == ReferenceMemory::Workgroup && self.explicit_workgroup;
        let buffer = matches!(kind, ReferenceMemory::Buffer | ReferenceMemory::Address);
        match element {
            _ if kind == ReferenceMemory::Image && !matches!(element, Element::U32 | Element::F32) => {
                return Err(Rule::ImageType);
            }
            Element::U8 => {
                self.need(Capability::Int8, Feature::ShaderInt8);
                if buffer {
                    self.need(Capability::StorageBuffer8BitAccess, Feature::StorageBuffer8BitAccess);
                    self.extensions.push("SPV_KHR_8bit_storage");
                } else if explicit {
                    self.need(
                        Capability::WorkgroupMemoryExplicitLayout8BitAccessKHR,
                        Feature::WorkgroupMemoryExplicitLayout8BitAccess,
                    );
                }
            }
            Element::U16 => {
                self.need(Capability::Int16, Feature::ShaderInt16);
                if buffer {
                    self.need(Capability::StorageBuffer16BitAccess, Feature::StorageBuffer16BitAccess);
                } else if explicit {
                    self.need(
                        Capability::WorkgroupMemoryExplicitLayout16BitAccessKHR,
                        Feature::WorkgroupMemoryExplicitLayout16BitAccess,
                    );
                }
            }
            Element::U64 => self.need(Capability::Int64, Feature::ShaderInt64),
            Element::F64 => {
                self.need(Capability::Int64, Feature::ShaderInt64);
                self.need(Capability::Float64, Feature::ShaderFloat64);
            }
            Element::U32 | Element::F32 => {}
        }
        Ok(())
    }

    /// Adds the requirements of an atomic.
    fn atomic(
        &mut self,
        element: Element,
        kind: ReferenceMemory,
        operation: Option<&RmwOperation>,
    ) -> Result<(), Rule> {
        let by_kind = |buffer, shared, image| match kind {
            ReferenceMemory::Buffer | ReferenceMemory::Address => buffer,
            ReferenceMemory::Workgroup => shared,
            ReferenceMemory::Image => image,
        };
        match element {
            Element::U8 | Element::U16 => return Err(Rule::NarrowAtomic),
            Element::U32 => return Ok(()),
            Element::U64 => {
                let feature = by_kind(
                    Feature::ShaderBufferInt64Atomics,
                    Feature::ShaderSharedInt64Atomics,
                    Feature::ShaderImageInt64Atomics,
                );
                self.need(Capability::Int64Atomics, feature);
                return Ok(());
            }
            Element::F32 => self.features.push(by_kind(
                Feature::ShaderBufferFloat32Atomics,
                Feature::ShaderSharedFloat32Atomics,
                Feature::ShaderImageFloat32Atomics,
            )),
            Element::F64 => self.features.push(by_kind(
                Feature::ShaderBufferFloat64Atomics,
                Feature::ShaderSharedFloat64Atomics,
                Feature::ShaderBufferFloat64Atomics,
            )),
        }
        let single = element == Element::F32;
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
                self.need(capability, feature);
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
                self.need(capability, feature);
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

    pub fn has(&self, wanted: ReferenceMemory) -> bool {
        self.paths.iter().any(|(_, kind)| *kind == wanted)
    }
}

/// Returns the image type for locations of an element.
pub(crate) fn image_type(module: &mut Module, element: Element, images: Images) -> Word {
    let format = if element == Element::F32 { ImageFormat::R32f } else { ImageFormat::R32ui };
    let dimension = match images {
        Images::TwoDimensional => Dim::Dim2D,
        Images::OneDimensional => Dim::Dim1D,
        Images::TexelBuffer => Dim::DimBuffer,
    };
    let texel = element.ty(module);
    module.image(texel, dimension, format)
}

/// Returns the storage class of pointers to a kind of memory.
pub(crate) fn spirv_class(kind: ReferenceMemory) -> SpirvClass {
    match kind {
        ReferenceMemory::Buffer => SpirvClass::StorageBuffer,
        ReferenceMemory::Address => SpirvClass::PhysicalStorageBuffer,
        ReferenceMemory::Workgroup => SpirvClass::Workgroup,
        ReferenceMemory::Image => SpirvClass::UniformConstant,
    }
}
