"""The form that takes a file of flights."""

from __future__ import annotations

from django import forms
from django.core.files.uploadedfile import UploadedFile

LARGEST = 100 * 1024 * 1024  # bytes


class UploadForm(forms.Form):
    """One CSV file; what its lines hold is checked by the import, not here."""

    file = forms.FileField(label="CSV file of flights", widget=forms.FileInput(attrs={"accept": ".csv,text/csv"}))

    def clean_file(self) -> UploadedFile[bytes]:
        """Refuse a file that is too large to be kept in the database."""
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > LARGEST:
            raise forms.ValidationError(f"The file is larger than {LARGEST // 1024 // 1024} MB.")
        return file
