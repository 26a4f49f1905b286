//! `nostr_badges_define`: a badge that can be awarded.

use crate::compose::{filled, publication, tag};
use crate::failure::Failure;
use crate::result::SendResult;
use crate::shape::record;
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::prelude::{Kind, Tag};

record! {
    struct Image {
        /// Picture URL
        url: String,
        /// Such as 1024x1024
        dimensions: Option<String>,
    }
}

publication! {
    struct Input {
        /// Its lasting name; the same name replaces
        identifier: String,
        /// What it is called
        name: Option<String>,
        /// What it stands for
        description: Option<String>,
        /// Picture
        image: Option<Image>,
        /// Smaller pictures
        thumbs: Option<Vec<Image>>,
        /// A few words
        content: Option<String>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 24,
        name: "nostr_badges_define",
        title: "Define a badge",
        status: Status::Stable,
        nips: &[58],
        summary: "Publishes a badge (kind 30009) that the active key can award with nostr_badges_award.",
        effect: Effect::Replaces,
        example: r#"{"identifier":"bravery","name":"Medal of Bravery","image":{"url":"https://example.com/bravery.png","dimensions":"1024x1024"}}"#,
    };

    type Input = Input;
    type Output = SendResult;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<SendResult, Failure> {
        let mut tags = vec![tag("d", [filled(&input.identifier, "/identifier")?])];
        let texts = [("name", &input.name), ("description", &input.description)];
        tags.extend(texts.into_iter().filter_map(|(name, value)| Some(tag(name, [value.as_deref()?]))));
        if let Some(image) = &input.image {
            tags.push(picture("image", image, "/image")?);
        }
        for (index, thumb) in input.thumbs.iter().flatten().enumerate() {
            tags.push(picture("thumb", thumb, &format!("/thumbs/{index}"))?);
        }
        let wishes = input.wishes();
        turn.publish(Kind::BadgeDefinition, tags, input.content.unwrap_or_default(), wishes).await
    }
}

/// `[name, url, size]`
fn picture(name: &str, image: &Image, pointer: &str) -> Result<Tag, Failure> {
    let url = filled(&image.url, &format!("{pointer}/url"))?;
    let size = image.dimensions.as_deref().unwrap_or_default().trim();
    let is_number = |text: &str| text.parse::<u32>().is_ok_and(|number| number > 0);
    if !size.is_empty() && !size.split_once('x').is_some_and(|(width, height)| is_number(width) && is_number(height)) {
        let words = "`dimensions` are width and height in pixels, such as 1024x1024";
        return Err(Failure::invalid(words).at(format!("{pointer}/dimensions")));
    }
    Ok(tag(name, [url, size]))
}
