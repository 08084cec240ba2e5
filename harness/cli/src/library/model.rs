//! Axiomatic memory models.

use campaign::models::{self, LoadedModel};
use model::Model;

use super::error::Error;

/// An axiomatic memory model: a cat file, shipped by name or given as text.
///
/// ```
/// use vk_litmus::AxiomaticModel;
///
/// assert!(AxiomaticModel::shipped_names().any(|(name, _)| name == "vulkan"));
/// assert_eq!(AxiomaticModel::named("vulkan")?.name(), "vulkan");
/// assert!(AxiomaticModel::named("vulkn").is_err_and(|error| error.message().contains("did you mean `vulkan`")));
/// let sc = AxiomaticModel::from_cat("own-sc", "VULKAN \"SC\"\nacyclic po | rf | fr | co as sc\n")?;
/// assert_eq!(sc.name(), "own-sc");
/// let error = AxiomaticModel::from_cat("wrong", "VULKAN \"wrong\"\nacyclic po | rff as order\n").err();
/// assert_eq!(error.map(|error| error.line()), Some(2));
/// # Ok::<(), vk_litmus::Error>(())
/// ```
#[derive(Debug)]
pub struct AxiomaticModel {
    pub(super) chosen: LoadedModel,
}

impl AxiomaticModel {
    /// Loads a shipped model, such as `vulkan`, or a `.cat` file.
    ///
    /// # Errors
    /// If the model is unknown, or its file has mistakes.
    pub fn named(name: &str) -> Result<AxiomaticModel, Error> {
        let chosen = models::load(name).map_err(|failure| Error::for_file(name, failure))?;
        Ok(AxiomaticModel { chosen })
    }

    /// Parses a cat text; it may include shipped files by name.
    ///
    /// # Errors
    /// Every mistake in the text, with its line and column.
    pub fn from_cat(name: &str, text: &str) -> Result<AxiomaticModel, Error> {
        let model = Model::from_text(name, text, &|_| None)?;
        Ok(AxiomaticModel {
            chosen: LoadedModel { hash: models::model_hash(&model), model, argument: format!("{name}.cat") },
        })
    }

    /// Returns the name under which it was loaded, as in answers.
    pub fn name(&self) -> &str {
        self.chosen.model.name()
    }

    /// Returns the names of the shipped models, each with a description of one line.
    pub fn shipped_names() -> impl Iterator<Item = (&'static str, &'static str)> {
        Model::shipped_models().iter().copied()
    }
}
