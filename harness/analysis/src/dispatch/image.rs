//! Images and samplers of a dispatch.

use arithmetic::TexelFormat;
use rspirv::spirv::{ImageFormat, Op};
use spirv_reader::{SpirvModule, SpirvType};

use super::DispatchBuffer;
use entry_point::inputs::{AddressMode, Sampler, default_image};
use entry_point::{AnalysisOptions, Problem, unsupported};
use walk::texels::{initial_texels, pack_texels};

/// The shape of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchImage {
    /// Width, height, and depth or layers.
    pub size: [u32; 3],
    pub dimensions: ImageDimensions,
    /// The number of its SPIR-V image format.
    pub format: u32,
    pub access: TexelAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageDimensions {
    One,
    Two,
    /// Two-dimensional layers.
    Layers,
    Three,
    /// A texel buffer.
    Buffer,
}

/// The accesses of a kernel to an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TexelAccess {
    Storage,
    /// Reads, with samplers of other bindings.
    Sampled,
    /// Reads with the sampler of the same binding.
    Combined(Sampler),
}

/// Returns true if devices may round what an image stores or returns.
pub(super) fn has_rounded_texels(module: &SpirvModule, ty: u32) -> bool {
    // Operand 6 of `OpTypeImage` is the format.
    let format = module.handle_operands.get(&ty).and_then(|handle| handle.get(6)).copied();
    // `Rgba32f`, `R32f`, `Rg32f` and integer formats are exact.
    !matches!(format, Some(1 | 3 | 6 | 21..=41))
}

/// Returns set, binding and state of the sampler of a variable.
pub(super) fn given_sampler(
    module: &SpirvModule,
    options: &AnalysisOptions,
    id: u32,
) -> Result<((u32, u32), Sampler), Problem> {
    let at = module.descriptor_of(id);
    let given = at.and_then(|at| Some((at, *options.samplers.get(&at)?)));
    let name = module.display_name(id);
    given.ok_or_else(|| unsupported(format!("dispatching the sampler of `{name}`, whose state is not given")))
}

/// Returns the image or texel buffer of a variable.
pub(super) fn build_image(
    module: &SpirvModule,
    options: &AnalysisOptions,
    id: u32,
    notes: &mut Vec<String>,
) -> Result<DispatchBuffer, Problem> {
    let mut ty = module.variables.get(&id).map_or(0, |variable| variable.ty);
    let name = module.variable_name(id, ty);
    let unsupported_image = |what: &str| unsupported(format!("dispatching {what} `{name}`"));
    let is_combined = matches!(module.types.get(&ty), Some(SpirvType::Handle(Op::TypeSampledImage)));
    if is_combined {
        ty = module.handle_operands.get(&ty).and_then(|handle| handle.first()).copied().unwrap_or(0);
    }
    if !matches!(module.types.get(&ty), Some(SpirvType::Handle(Op::TypeImage))) {
        return Err(unsupported_image("the array of images"));
    }
    let handle = module.handle_operands.get(&ty).map_or(&[][..], Vec::as_slice);
    // Operands of `OpTypeImage`: the type of the numbers, the dimension, not depth, layers, not multisampled, for use with (1)
    // or without a sampler, and the format.
    let (Some(descriptor), [number, dimension, 0 | 2, layers, 0, sampled @ (1 | 2), declared, ..]) =
        (module.descriptor_of(id), handle)
    else {
        return Err(unsupported_image("the multisampled or depth image"));
    };
    let dimensions = match (dimension, layers, sampled) {
        (0, 0, _) => ImageDimensions::One,
        (1, 0, _) => ImageDimensions::Two,
        (1, 1, _) => ImageDimensions::Layers,
        (2, 0, _) => ImageDimensions::Three,
        (5, 0, 2) => ImageDimensions::Buffer,
        _ => return Err(unsupported_image("the cube, or an image of another shape,")),
    };
    let assumed = default_image(*dimension, *layers == 1);
    let given = options.images.get(&descriptor).unwrap_or(&assumed);
    let mut size = given.size;
    match dimensions {
        ImageDimensions::One | ImageDimensions::Buffer => (size[1], size[2]) = (1, 1),
        ImageDimensions::Two => size[2] = 1,
        ImageDimensions::Layers | ImageDimensions::Three => {}
    }
    let [width, height, _] = size;
    if !options.images.contains_key(&descriptor) {
        notes.push(format!("image `{name}` is not given: {width}x{height} of zeros assumed"));
    }
    if given.levels > 1 {
        return Err(unsupported_image("several mip levels of"));
    }
    // A sampled image may have any format with the numbers of its type: by default one of 32-bit components.
    let widest = match module.types.get(number) {
        Some(SpirvType::Integer { signed: true, .. }) => ImageFormat::Rgba32i,
        Some(SpirvType::Integer { .. }) => ImageFormat::Rgba32ui,
        _ => ImageFormat::Rgba32f,
    };
    let format = match (declared, given.format) {
        (0, Some(given)) => given,
        (0, None) if *sampled == 1 => widest as u32,
        (declared, _) => *declared,
    };
    let count = size.iter().map(|axis| u64::from(*axis)).product();
    let packed_texels = TexelFormat::from_spirv_format(format)
        .filter(|format| format.number_bits() == 32)
        .and_then(|format| pack_texels(format, &initial_texels(&given.texels, count, Some(format))?));
    let mut bytes = packed_texels
        .ok_or_else(|| unsupported_image("a format that is unknown or 64 bits wide, of the image"))?;
    if dimensions == ImageDimensions::Buffer && bytes.len() as u64 != 4 * count {
        return Err(unsupported_image("a format that is not 32 bits wide, of the texel buffer"));
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let access = match (is_combined, sampled) {
        (true, _) => {
            // A texel that is fetched has no use for it.
            let nearest = Sampler { is_linear: false, address_mode: AddressMode::Clamp };
            TexelAccess::Combined(options.samplers.get(&descriptor).copied().unwrap_or(nearest))
        }
        (false, 1) => TexelAccess::Sampled,
        (false, _) => TexelAccess::Storage,
    };
    let image = Some(DispatchImage { size, dimensions, format, access });
    let (set, binding) = descriptor;
    let is_uniform = access != TexelAccess::Storage;
    Ok(DispatchBuffer { set, binding, element: 0, is_uniform, name, bytes, image })
}
