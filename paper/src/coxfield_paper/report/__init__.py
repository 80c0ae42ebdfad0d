"""What experiments leave behind, and the page that is made of it: tasks -> records -> blocks -> page."""
