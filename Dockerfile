# JupyterLab on the course, for a container engine or Binder; docs/install.md says how to use it.
FROM python:3.12-slim

# What the package is built from, and nothing else of the folder.
COPY pyproject.toml constraints.txt README.md LICENSE LICENSE-lessons NOTICE /src/
COPY minigrad /src/minigrad
COPY exercises /src/exercises
COPY lessons /src/lessons
COPY solutions /src/solutions
# Binder starts `jupyter notebook`, which the lessons do not need.
RUN pip install --no-cache-dir "/src[lab]" notebook --constraint /src/constraints.txt

# Binder passes its own two.
ARG NB_USER=learner
ARG NB_UID=1000
ENV HOME=/home/${NB_USER}
RUN useradd --create-home --home-dir ${HOME} --uid ${NB_UID} ${NB_USER}
USER ${NB_USER}
RUN minigrad start ${HOME}/course
WORKDIR ${HOME}/course

EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--port=8888", "--no-browser"]
