//! naga as a library, with the same options as its command line.

use naga::back::spv;
use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};
use naga::{SourceLocation, front};

use super::{OverrideValues, strip_unsupported_directives};
use crate::scan::blank_comments;

/// The compiler with its version.
pub const COMPILER: &str = "naga 30.0.1 (library)";

/// The reason that a source does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WgslError {
    pub message: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl WgslError {
    fn new(message: String, place: Option<SourceLocation>, text: &str) -> WgslError {
        let Some(place) = place else { return WgslError { message, line: 1, column: 1 } };
        // naga counts columns in bytes.
        let end = (place.offset as usize).min(text.len());
        let start = end.saturating_sub((place.line_position as usize).saturating_sub(1));
        let column = text.get(start..end).map_or(1, |before| before.chars().count() + 1);
        WgslError { message, line: place.line_number, column: u32::try_from(column).unwrap_or(u32::MAX) }
    }
}

/// Compiles a source to SPIR-V with debug lines, and returns its bytes. `file` is the name of the source in them.
///
/// # Errors
/// If naga refuses the source.
pub fn compile(file: &str, text: &str, overrides: &OverrideValues) -> Result<Vec<u8>, WgslError> {
    let changed = strip_unsupported_directives(text, &blank_comments(text));
    let text = changed.as_deref().unwrap_or(text);
    let options = front::wgsl::Options { parse_doc_comments: false, capabilities: Capabilities::all() };
    let module = front::wgsl::Frontend::new_with_options(options)
        .parse(text)
        .map_err(|error| WgslError::new(error.message().to_owned(), error.location(text), text))?;
    let supported = spv::supported_capabilities();
    let info = Validator::new(ValidationFlags::all(), supported)
        .subgroup_stages(ShaderStages::all())
        .subgroup_operations(SubgroupOperationSet::all())
        .validate(&module)
        .map_err(|error| WgslError::new(format_error_chain(&error), error.location(text), text))?;
    let error_without_position = |message: String| WgslError::new(message, None, text);
    let mut values = naga::back::PipelineConstants::default();
    for (name, value) in overrides.iter() {
        let number = match value {
            "true" => 1.0,
            "false" => 0.0,
            number => number
                .parse()
                .map_err(|_| error_without_position(format!("`{name}={number}`: expected a number")))?,
        };
        values.insert(name.to_owned(), number);
    }
    let (module, info) = naga::back::pipeline_constants::process_overrides(&module, &info, None, &values)
        .map_err(|error| error_without_position(format_error_chain(&error)))?;
    let mut options = spv::Options {
        debug_info: Some(spv::DebugInfo {
            source_code: text,
            file_name: file,
            language: spv::SourceLanguage::WGSL,
        }),
        ..spv::Options::default()
    };
    options.flags.set(spv::WriterFlags::DEBUG, true);
    options.flags.set(spv::WriterFlags::ADJUST_COORDINATE_SPACE, true);
    let words = spv::write_vec(&module, &info, &options, None)
        .map_err(|error| error_without_position(format_error_chain(&error)))?;
    Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// Formats an error and its sources.
fn format_error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_lock_file() {
        let lock = include_str!("../../../../Cargo.lock");
        let (_, rest) = lock.split_once("name = \"naga\"\nversion = \"").unwrap();
        let (version, _) = rest.split_once('"').unwrap();
        assert_eq!(COMPILER, format!("naga {version} (library)"));
    }

    #[test]
    fn mistakes_have_a_place() {
        let none = OverrideValues::default();
        let compiled = |text: &str| compile("a.wgsl", text, &none);
        assert!(compiled("@compute @workgroup_size(1) fn main() {}").is_ok());
        let error = compiled("@compute @workgroup_size(1)\nfn main() { /* é */ let a = b; }").unwrap_err();
        assert_eq!((error.line, error.column), (2, 29), "{error:?}");
        assert!(error.message.contains('b'), "{error}");
        let error = compiled("@compute @workgroup_size(0) fn main() {}").unwrap_err();
        assert!(error.message.contains("orkgroup"), "{error}");
    }
}
