//! Loads models by name or from a file.

use std::path::{Path, PathBuf};

use model::Model;

use crate::contained_path::path_inside;
use crate::similar::did_you_mean;
use crate::{Failure, files};

/// A loaded model with the hash of its text.
#[derive(Debug)]
pub struct LoadedModel {
    pub model: Model,
    /// The name or path from the command line.
    pub argument: String,
    /// BLAKE3 hash of all its text ([`model_hash`]), in hexadecimal digits.
    pub hash: String,
}

/// Loads a shipped model by name. Other names, such as a path in a record, give `None`.
pub fn load_shipped(name: &str) -> Option<LoadedModel> {
    Model::shipped_text(name).and_then(|_| load(name).ok())
}

/// The largest cat file that is read.
const MAX_MODEL_BYTES: u64 = 1 << 20;

/// Loads a shipped model by name, or a cat file.
///
/// # Errors
/// If the model does not exist, or its text is invalid.
pub fn load(argument: &str) -> Result<LoadedModel, Failure> {
    if let Some(shipped) = Model::shipped(argument) {
        let model = shipped.map_err(Failure::input)?;
        return Ok(LoadedModel { hash: model_hash(&model), model, argument: argument.to_owned() });
    }
    let path = Path::new(argument);
    if path.extension().is_none_or(|extension| extension != "cat") {
        if path.is_file() {
            return Err(Failure::input_message(format!(
                "{argument}: no cat file: expected a name that ends in .cat"
            )));
        }
        let known: Vec<&str> = Model::shipped_models().iter().map(|(name, _)| *name).collect();
        return Err(Failure::input_message(format!(
            "unknown model `{argument}`{}: give a cat file or one of {}",
            did_you_mean(argument, known.iter().copied()),
            known.join(", ")
        )));
    }
    let text = read_model_text(path)?;
    let folder: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
    let include = |name: &str| path_inside(&folder, name).ok().and_then(|path| read_model_text(&path).ok());
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let model = Model::from_text(&name, &text, &include)
        .map_err(|errors| Failure::input(errors.with_file_name(&path.display().to_string())))?;
    Ok(LoadedModel { hash: model_hash(&model), model, argument: argument.to_owned() })
}

fn read_model_text(path: &Path) -> Result<String, Failure> {
    let to_failure = |error| Failure::input_message(format!("{}: {error}", path.display()));
    files::read_text(path, MAX_MODEL_BYTES).map_err(to_failure)
}

/// Returns the BLAKE3 hash in hexadecimal digits.
pub fn text_hash(text: &str) -> String {
    runner::text_hash(text)
}

/// Returns the BLAKE3 hash of a model and its included files, because both determine verdicts.
pub fn model_hash(model: &Model) -> String {
    results::sources_hash(model.sources())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_includes_included_files() {
        let hash_with_body = |body: &str| {
            let include = |file: &str| (file == "body.cat").then(|| body.to_owned());
            model_hash(&Model::from_text("own", "VULKAN \"own\"\ninclude \"body.cat\"\n", &include).unwrap())
        };
        let body = "acyclic po | rf as order";
        assert_eq!(hash_with_body(body), hash_with_body(body));
        assert_ne!(hash_with_body(body), hash_with_body("acyclic po | rf | fr as order"));
        let shipped = load_shipped("vulkan").unwrap();
        assert_ne!(shipped.hash, text_hash(Model::shipped_text("vulkan").unwrap()));
    }
}
