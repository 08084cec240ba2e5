//! Sizes of buffers and images that no option gives: larger ones for accesses beyond the assumed size.
//!
//! The walk does not check such accesses. It is repeated with sizes that hold them; what still lies beyond needs a size
//! from an option.

use std::sync::Arc;

use walk::{ExceededSize, NeededInput, RequiredSize};

use entry_point::AnalysisOptions;
use entry_point::input_place::{AssumedInput, InputKind, InputPlace};
use entry_point::inputs::{DEFAULT_BYTES, ImageInput, fill_bytes};

/// Upper bound on the bytes of a buffer whose size is chosen.
const MAX_BYTES: u64 = 1 << 26;
/// Upper bound on the texels of an image whose size is chosen.
const MAX_TEXELS: u64 = 1 << 22;

/// Returns options with sizes that hold the accesses beyond assumed ones; `None` if no larger size is chosen.
pub(crate) fn with_larger_sizes(
    options: &AnalysisOptions,
    exceeded: &[ExceededSize],
) -> Option<AnalysisOptions> {
    let mut larger = options.clone();
    let mut is_changed = false;
    for one in exceeded {
        is_changed |= match (one.at, one.required) {
            (Some(at), RequiredSize::Bytes(bytes)) => enlarge_buffer(&mut larger, at, &one.name, bytes),
            (None, RequiredSize::Bytes(bytes)) => enlarge_target(&mut larger, &one.name, bytes),
            (Some(at), RequiredSize::Texels(size)) => enlarge_image(&mut larger, at, &one.name, size),
            (None, RequiredSize::Texels(_)) => false,
        };
    }
    is_changed.then_some(larger)
}

/// Returns the number of bytes to choose for accesses up to a byte.
fn chosen_bytes(required: u64) -> Option<usize> {
    let bytes = required.checked_next_power_of_two()?.max(DEFAULT_BYTES);
    (bytes <= MAX_BYTES).then_some(bytes as usize)
}

/// Counts a place among the assumed inputs: its size is none that the caller gave.
fn add_assumed(options: &mut AnalysisOptions, place: InputPlace, name: &str) {
    if !options.assumed.iter().any(|known| known.place == place) {
        options.assumed.push(AssumedInput { place, name: name.to_owned(), kind: InputKind::Other });
    }
}

fn enlarge_buffer(options: &mut AnalysisOptions, at: (u32, u32), name: &str, required: u64) -> bool {
    let Some(bytes) = chosen_bytes(required) else { return false };
    let contents = InputPlace::Contents(at);
    let contents = options.assumed.iter().find(|known| known.place == contents);
    let word = contents.map_or("zeros".to_owned(), |contents| contents.describe_value(options));
    let known = Arc::make_mut(options.buffers.entry(at).or_default());
    if known.len() >= bytes {
        return false;
    }
    let filled = fill_bytes(&word, bytes as u64).unwrap_or_default();
    known.extend(filled.iter().skip(known.len()).copied().collect::<Vec<u8>>());
    known.resize(bytes, 0);
    add_assumed(options, InputPlace::Length(at), name);
    true
}

fn enlarge_target(options: &mut AnalysisOptions, name: &str, required: u64) -> bool {
    let Some(bytes) = chosen_bytes(required) else { return false };
    let mut is_changed = false;
    for address in options.addresses.iter_mut().filter(|address| address.name == name) {
        is_changed |= address.bytes.len() < bytes;
        address.bytes.resize(address.bytes.len().max(bytes), 0);
    }
    is_changed
}

fn enlarge_image(options: &mut AnalysisOptions, at: (u32, u32), name: &str, required: [u32; 3]) -> bool {
    let known = options.images.get(&at).cloned();
    let old = match known {
        Some(image) => image,
        None => ImageInput { size: [1; 3], levels: 1, ..ImageInput::default() },
    };
    let size = [0, 1, 2].map(|axis: usize| old.size[axis].max(required[axis].max(1)));
    let count = size.iter().fold(1_u64, |all, size| all.saturating_mul(u64::from(*size)));
    if size == old.size || count > MAX_TEXELS {
        return false;
    }
    options.images.insert(at, ImageInput { size, ..old });
    add_assumed(options, InputPlace::Image(at), name);
    true
}

/// Returns the sizes that an answer needs because accesses lie beyond the assumed ones.
pub(crate) fn needed_sizes(options: &AnalysisOptions, exceeded: &[ExceededSize]) -> Vec<NeededInput> {
    let need = |one: &ExceededSize| {
        let place = one.at.map(|at| match one.required {
            RequiredSize::Bytes(_) => InputPlace::Length(at),
            RequiredSize::Texels(_) => InputPlace::Image(at),
        });
        let target = options.addresses.iter().find(|address| one.at.is_none() && address.name == one.name);
        let (value, option) = match (place, target) {
            (Some(place), _) => {
                let input = AssumedInput { place, name: one.name.clone(), kind: InputKind::Other };
                (input.describe_value(options), input.example_option(&options.assumed))
            }
            (None, Some(target)) => {
                let option = format!("--bind {}={} --buffer {1}=zeros:BYTES", target.at, target.name);
                (format!("{} bytes", target.bytes.len()), option)
            }
            (None, None) => return None,
        };
        Some(NeededInput::for_finding(one.name.clone(), value, option).with_finding(&one.finding))
    };
    exceeded.iter().filter_map(need).collect()
}
