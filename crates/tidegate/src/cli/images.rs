//! The options that say what to make of images: for `train` and `preview`.

use clap::{Args, ValueEnum};
use tidegate::{ImageSize, Job};
use tidegate_data::images::{Augment, BadFileRule, Resize};

#[derive(Args)]
#[command(next_help_heading = "Images")]
pub(super) struct ImageArguments {
    /// What the network sees: a side such as 150, or height and width such as 150x200 [default: by the images]
    #[arg(long, value_name = "PIXELS")]
    image_size: Option<ImageSize>,
    /// What is done with images of other proportions: stretched, fitted with black bars, cropped [default: stretch]
    #[arg(long, value_enum, value_name = "HOW")]
    resize: Option<ResizeChoice>,
    /// 1 for gray, 3 for colours [default: by the images]
    #[arg(long, value_name = "1|3")]
    channels: Option<usize>,
    /// How images are changed while they are learned from: standard, or flip,rotation=20,zoom=0.2,shift=0.1,…
    #[arg(long, value_name = "LIST", value_parser = parse_augment)]
    augment: Option<Augment>,
    /// What to do with files that are no images, or broken [default: skip]
    #[arg(long, value_enum, value_name = "skip|fail")]
    pub(super) bad_files: Option<BadFilesChoice>,
    /// As many samples of each class as of any other in every epoch
    #[arg(long)]
    balanced: bool,
    /// Of a table that lists images, the column of their paths
    #[arg(long, value_name = "COLUMN")]
    images: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ResizeChoice {
    Stretch,
    Fit,
    Crop,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum BadFilesChoice {
    Skip,
    Fail,
}

impl From<BadFilesChoice> for BadFileRule {
    fn from(choice: BadFilesChoice) -> BadFileRule {
        match choice {
            BadFilesChoice::Skip => BadFileRule::Skip,
            BadFilesChoice::Fail => BadFileRule::Fail,
        }
    }
}

fn parse_augment(text: &str) -> Result<Augment, String> {
    Augment::parse(text).map_err(|fault| format!("{fault}; {}", fault.hint()))
}

impl ImageArguments {
    /// Overrides what the job says of images.
    pub(super) fn apply(&self, job: &mut Job) {
        let part = &mut job.images;
        part.size = self.image_size.or(part.size);
        part.channels = self.channels.or(part.channels);
        part.column = self.images.clone().or(part.column.take());
        part.balanced |= self.balanced;
        if let Some(resize) = self.resize {
            part.resize = match resize {
                ResizeChoice::Stretch => Resize::Stretch,
                ResizeChoice::Fit => Resize::Fit,
                ResizeChoice::Crop => Resize::Crop,
            };
        }
        if let Some(rule) = self.bad_files {
            part.bad_files = rule.into();
        }
        if let Some(augment) = &self.augment {
            job.augment = augment.clone();
        }
    }
}
