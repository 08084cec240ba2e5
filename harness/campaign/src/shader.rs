//! User shaders: compiles their sources and selects their entry points.

pub mod archive;
pub mod device_contents;
pub mod open_memory;
pub mod prepare_run;
pub mod race;
pub mod refine;
pub mod script;
pub(crate) mod shader_analysis;
pub mod smt_solver;
pub mod source;

use analysis::{EntryOptions, entry_options};
use entry_point::input_place::UnsetOverride;
use entry_point::{AnalysisOptions, Refusal};
use spirv_reader::SpirvModule;

/// Returns the options for each entry point of a module, or for the one that they name. Warns of inputs that
/// the module does not use. `unset` has the overrides whose values its compiler assumed.
///
/// # Errors
/// If the module has no entry point, or inputs name nothing in the module or have the wrong type.
pub fn entry_point_options(
    file: &str,
    module: &SpirvModule,
    unset: &[UnsetOverride],
    options: &AnalysisOptions,
) -> Result<Vec<AnalysisOptions>, Refusal> {
    let EntryOptions { entries, unused } = entry_options(module, options)?;
    for unused in unused {
        tracing::warn!("{file}: unused input: {unused}");
    }
    let with_unset = |entry| AnalysisOptions { unset_overrides: unset.to_vec(), ..entry };
    Ok(entries.into_iter().map(with_unset).collect())
}
