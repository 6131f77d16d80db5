"""Links between the files of the repository lead somewhere."""

import re

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def test_every_relative_link_in_a_markdown_file_leads_to_a_file(repository, repository_files):
    broken = [
        f"{path}: {target}"
        for path in repository_files
        if path.suffix == ".md"
        for target in LINK.findall((repository / path).read_text())
        if not (repository / path.parent / target).exists()
    ]
    assert broken == []
