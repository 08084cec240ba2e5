//! Writes and verifies certificates of a model's answers, and compares them with a new derivation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use certificate::{Certificate, CertificateError, CertificateSize, FlagClaim, FlagGroup, ModelText, verify};
use litmus::{Outcome, Test};
use model::certify::{CertifiedTest, CertifyError, certify, derive_structures, model_text};
use model::{Budget, Model, PredictOptions};

use crate::check::CheckModels;
use crate::source::{RejectedSource, TestSource};
use crate::time_limit::stop_after;

/// The reason that a certificate does not verify.
#[derive(Debug, thiserror::Error)]
pub enum VerificationError {
    /// It is not JSON of the certificate's format.
    #[error("not a certificate: {0}")]
    Format(#[from] serde_json::Error),
    /// The checker rejects it.
    #[error(transparent)]
    Rejected(#[from] CertificateError),
    #[error("the text of the model: {0}")]
    Model(String),
    #[error("`{0}` is a shipped model with another text")]
    OtherModel(String),
    #[error("the event structures cannot be derived: {0}")]
    Underivable(CertifyError),
    /// The event structures are not those of the test.
    #[error("the event structures are not those of the test and the model")]
    OtherStructures,
}

impl VerificationError {
    /// Returns true if the time limit ended the verification.
    pub fn is_time_limit(&self) -> bool {
        matches!(
            self,
            VerificationError::Rejected(CertificateError::Stopped)
                | VerificationError::Underivable(CertifyError::BudgetExhausted)
        )
    }
}

/// The result of certifying one source.
#[derive(Debug)]
pub enum Certification {
    /// The verified certificate as JSON, and its size.
    Certified(String, CertificateSize),
    /// The answer has no certificate.
    NotCertified(String),
    /// The source is not a test.
    Rejected(RejectedSource),
}

/// Predicts a test and proves the prediction; verifies the certificate before returning it.
pub fn certify_source(
    source: TestSource,
    models: &CheckModels,
    timeout: Duration,
    unroll: Option<u32>,
) -> Certification {
    let loaded = match source.load() {
        Ok(loaded) => loaded,
        Err(rejected) => return Certification::Rejected(rejected),
    };
    let chosen = match models.model_for_test(&loaded) {
        Ok(chosen) => chosen,
        Err(failure) => return Certification::NotCertified(failure.report().to_string()),
    };
    let stop = stop_after(timeout);
    let options = PredictOptions { budget: Budget::until(&stop), unroll: unroll.unwrap_or(1) };
    let subject = CertifiedTest { name: &loaded.source.id, text: &loaded.text, test: &loaded.test };
    let certified = certify(subject, &chosen.model, &options);
    let verified = certified.map_err(|error| error.to_string()).and_then(|certificate| {
        // A certificate that its checker rejects is not returned.
        let verified = verify(&certificate, &|| false).map_err(|error| format!("the checker: {error}"))?;
        let text = serde_json::to_string(&certificate).map_err(|error| error.to_string())?;
        Ok((text, verified))
    });
    match verified {
        Ok((text, verified)) => Certification::Certified(text, verified),
        Err(reason) => Certification::NotCertified(reason),
    }
}

/// Proves that a test is free of races and forbids an outcome, and verifies the proof.
///
/// # Errors
/// A description of what is missing for the proof.
pub fn prove_forbidden(
    test: &Test,
    model: &Model,
    forbidden: &[&Outcome],
    timeout: Duration,
) -> Result<(), String> {
    let (stop, text) = (stop_after(timeout), litmus::print(test));
    let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
    let subject = CertifiedTest { name: &test.name, text: &text, test };
    let certificate = certify(subject, model, &options).map_err(|error| error.to_string())?;
    verify(&certificate, &stop).map_err(|error| format!("the checker: {error}"))?;
    if certificate.truncated {
        return Err("loops exceed the bound".to_owned());
    }
    let is_race_claim = |claim: &FlagClaim| claim.group == FlagGroup::Race && claim.witness.is_some();
    if certificate.flags.iter().any(is_race_claim) {
        return Err("the certified program has a race".to_owned());
    }
    let is_allowed = |outcome: &&Outcome| {
        let values = || outcome.0.iter().map(|value| value.0);
        certificate.allowed.iter().any(|allowed_outcome| allowed_outcome.values.iter().copied().eq(values()))
    };
    match forbidden.iter().all(is_allowed) {
        true => Err("the certificate allows each outcome that was observed".to_owned()),
        false => Ok(()),
    }
}

/// The models of verified certificates, each loaded once.
#[derive(Debug, Default)]
pub struct VerifiedModels(Mutex<Vec<(ModelText, Arc<Model>)>>);

impl VerifiedModels {
    fn load(&self, certified_text: &ModelText) -> Result<Arc<Model>, VerificationError> {
        if let Ok(loaded_models) = self.0.lock()
            && let Some((_, model)) = loaded_models.iter().find(|(text, _)| text == certified_text)
        {
            return Ok(model.clone());
        }
        if let Some(Ok(shipped)) = Model::shipped(&certified_text.name)
            && model_text(&shipped) != *certified_text
        {
            return Err(VerificationError::OtherModel(certified_text.name.clone()));
        }
        let include = |name: &str| certified_text.includes.get(name).cloned();
        let model = Model::from_text(&certified_text.name, &certified_text.text, &include)
            .map_err(|errors| VerificationError::Model(errors.to_string()))?;
        let model = Arc::new(model);
        if let Ok(mut loaded_models) = self.0.lock() {
            loaded_models.push((certified_text.clone(), model.clone()));
        }
        Ok(model)
    }
}

/// Verifies a certificate within a time limit, and that its event structures are those of its test and model.
///
/// # Errors
/// The first part that does not hold.
pub fn verify_certificate(
    text: &str,
    models: &VerifiedModels,
    timeout: Duration,
) -> Result<(Certificate, CertificateSize), VerificationError> {
    let stop = stop_after(timeout);
    let certificate: Certificate = serde_json::from_str(text)?;
    let verified = verify(&certificate, &stop)?;
    let model = models.load(&certificate.model)?;
    let test = litmus::parse(&certificate.test, &certificate.name)
        .map_err(|errors| CertificateError::Test(errors.to_string()))?;
    let options = PredictOptions { budget: Budget::until(&stop), unroll: certificate.bound };
    let derived = derive_structures(&test, &model, &options).map_err(VerificationError::Underivable)?;
    if derived.structures != certificate.structures || derived.domain != certificate.domain {
        return Err(VerificationError::OtherStructures);
    }
    Ok((certificate, verified))
}
